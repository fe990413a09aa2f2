// wb.Board in the output of a cell.

import "./board.css";

import { BoardPanel } from "./panel.js";

function render({ model, el: host }) {
  const panel = new BoardPanel((message) => model.send(message), model.get("can_put"));
  const heard = (message) => panel.hear(message);
  host.append(panel.node);
  model.on("msg:custom", heard);
  panel.show(true);
  return () => {
    model.off("msg:custom", heard);
    panel.end();
  };
}

export default { render };
