// Text that is being typed into a knob outlasts what the kernel does to the forms meanwhile.

/** The box that is typed into; one at a time. */
export class Typing {
  /** @param {(box: HTMLInputElement, path: string) => HTMLInputElement | undefined} boxOf the box of a knob's path that is like this one, as the forms are now */
  constructor(boxOf) {
    Object.assign(this, { boxOf, box: null, gone: null });
  }

  /**
   * A box is typed into: until it is left or its text is sent, what others write into it waits.
   * @param {HTMLInputElement} box
   * @param {string} path of its knob: once its form is gone, nothing says that any more
   */
  begin(box, path) {
    if (this.box === box) return;
    this.#let(false);
    Object.assign(this, { box, path, late: undefined, gone: null });
    const { get } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(box), "value");
    Object.defineProperty(box, "value", { configurable: true, get, set: (text) => (this.late = text) });
  }

  /** Its text was sent to the kernel: by hand, or by the browser as the box went with its form. */
  sent() {
    const state = this.#state();
    this.#let(true);
    queueMicrotask(() => state?.box.isConnected === false && (this.gone = state));
  }

  /** It has lost the focus; one that has gone with its form is not left, but followed. */
  left() {
    const { box } = this;
    queueMicrotask(() => this.box === box && box?.isConnected && this.#let(false));
  }

  /** A form of another kind has taken the place of the one that is typed into: the text and the keyboard go on there. */
  follow() {
    if (this.box?.isConnected === false) {
      this.gone = this.#state();
      this.#let(true);
    }
    const { box, path, value, start, end } = this.gone ?? {};
    const there = box && this.boxOf(box, path);
    if (!there) return;
    this.gone = null;
    // Whoever is elsewhere by now stays there.
    if (document.activeElement !== document.body) return;
    there.focus();
    there.value = value;
    there.setSelectionRange(start, end);
    there.dispatchEvent(new InputEvent("input", { bubbles: true }));
  }

  #state() {
    const { box, path } = this;
    return box && { box, path, value: box.value, start: box.selectionStart, end: box.selectionEnd };
  }

  #let(sent) {
    const { box, late } = this;
    if (!box) return;
    this.box = null;
    delete box.value;
    if (!sent && late !== undefined) box.value = late;
  }
}
