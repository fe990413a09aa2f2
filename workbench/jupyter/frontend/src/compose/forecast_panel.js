// Brings the style of the forecast, which is plain HTML.

import "./forecast_panel.css";

export default {
  render({ el }) {
    el.hidden = true;
  },
};
