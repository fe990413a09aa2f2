// The toolbar of the table: what can be asked of the runs that are selected and can be seen, and the question before it.

import { el, say } from "../dom.js";
import { Question } from "../question.js";
import { roving } from "../roving.js";
import { endRunsQuestion } from "../steering.js";
import { deleteQuestion, namesOf, possible, selectionText, tagChanges, titleOf } from "./actions.js";

export class Bar {
  /**
   * @param {object} on
   * @param {(verb: string, ids: string[], rest?: object) => void} on.ask
   * @param {(text: string) => void} on.refuse why something cannot be done
   * @param {() => void} on.back gives the focus to the table
   */
  constructor(on) {
    this.on = on;
    this.actions = [];
    this.chosen = [];
    this.partly = [];
    this.buttons = el("div", { class: "lab-buttons", role: "toolbar", "aria-label": "actions on the selected runs" });
    this.picked = el("span", { class: "lab-picked", "aria-live": "polite" });
    this.question = new Question(on.back);
    this.node = el("div", { class: "lab-actions" }, this.buttons, this.question.node);
    this.settle = roving(this.buttons, () => [...this.buttons.children]);
  }

  /**
   * @param {object[]} actions
   * @param {object} selection
   * @param {object[]} selection.chosen rows that are selected and seen, see ./seen.js
   * @param {number} selection.filtered, selection.folded selected ones that are not; selection.partly groups of the latter
   * @param {number} selection.trashed deleted runs
   */
  show(actions, { chosen, filtered, folded, partly, trashed }) {
    Object.assign(this, { actions, chosen, partly, trashed, unseen: filtered + folded });
    const key = actions.map(({ verb }) => verb).join();
    // The buttons are kept: one that was just pressed must not lose the focus.
    if (this.node.dataset.key !== key) {
      this.node.dataset.key = key;
      this.buttons.replaceChildren(...actions.map((action, i) => this.#button(action, i > 0 && action.group !== actions[i - 1].group)));
      this.settle();
    }
    for (const [i, action] of actions.entries()) {
      const { why } = possible(action, chosen, partly, trashed);
      const button = this.buttons.children[i];
      // Still to be reached and pressed: then it says why it cannot.
      button.setAttribute("aria-disabled", String(Boolean(why)));
      say(button, titleOf(action, chosen));
      button.title = why ? `${action.title.replace("…", "")}: ${why}` : `${action.says}${action.key ? ` (${action.key})` : ""}`;
    }
    say(this.picked, selectionText(chosen.length + filtered + folded, filtered, folded));
  }

  /** Does what a button stands for, after a question where it needs one. */
  act(action) {
    if (!action) return;
    const { ids, why } = possible(action, this.chosen, this.partly, this.trashed);
    const rows = this.chosen.filter(({ id }) => ids.includes(id));
    if (why) this.on.refuse(`${action.title.replace("…", "")}: ${why}`);
    else if (action.verb in ASK) {
      const { then = () => ({}), ...what } = ASK[action.verb](rows, this);
      this.question.ask(what, (typed) => this.on.ask(what.verb ?? action.verb, ids, then(typed)));
      this.#beside(action.verb);
    } else this.on.ask(action.verb, ids);
  }

  /** A note for one run, where its column is hidden. */
  askNote(row) {
    const what = { text: `Note on ${row.name}`, yes: "Keep", label: "note", value: row.notes, optional: true };
    this.question.ask(what, (notes) => this.on.ask("label", [row.id], { notes }));
    this.#beside("tag");
  }

  /** Puts the question above the button that asks it, as far as the table reaches. */
  #beside(verb) {
    const { node } = this.question;
    const [{ offsetLeft, offsetTop }, place] = [this.buttons.querySelector(`[data-verb="${verb}"]`) ?? this.buttons, node.offsetParent];
    // At its first place: how wide it is depends on the room to the right of it.
    node.style.cssText = "";
    const [left, top] = [place.clientWidth - node.offsetWidth - node.offsetLeft, offsetTop - node.offsetHeight];
    node.style.left = `${Math.min(offsetLeft, left)}px`;
    node.style.top = `${Math.max(0, top)}px`;
  }

  #button(action, apart) {
    const { verb, title, key } = action;
    // Of a double click the second is no second request.
    const click = (event) => event.detail < 2 && this.act(action);
    return el("button", { type: "button", class: apart ? "lab-apart" : "", text: title, "data-verb": verb, "aria-keyshortcuts": key, on: { click } });
  }
}

/** What is asked before a verb: words of the question, and what of the answer goes with the request. */
const ASK = {
  stop: (rows) => endRunsQuestion(rows.map(({ name, status }) => ({ name, status }))),
  delete: (rows, { chosen, unseen }) => deleteQuestion(rows, chosen, unseen),
  empty: (_, { trashed }) => ({ text: `Remove all ${trashed} deleted runs for good? They cannot come back.`, yes: "Remove for good", danger: true }),
  rename: ([row]) => ({ verb: "label", text: `Name of ${row.name}`, yes: "Rename", label: "new name; an empty one brings the recipe's back", value: row.name, hint: "the recipe's name", optional: true, then: (name) => ({ name }) }),
  tag: (rows) => ({ verb: "label", text: `Tags of ${namesOf(rows)}`, yes: "Change tags", label: "tags to add, and -tags to remove", hint: "good -old", then: tagChanges }),
  score: (rows) => ({ text: `Score ${namesOf(rows)}`, yes: "Score", label: "benchmarks, and the folder of their files", value: "fast", hint: "blimp,piqa in FOLDER", then: (on) => ({ on }) }),
  finetune: (rows) => ({ text: `Fine-tune ${namesOf(rows)}`, yes: "Fine-tune", label: "task, and the folder of its files", hint: "boolq in FOLDER", then: (on) => ({ on }) }),
  export: (rows) => ({ text: `Export the model of ${namesOf(rows)}`, yes: "Export", label: "new folder", value: `exports/${rows[0].id}`, then: (target) => ({ target }) }),
};
