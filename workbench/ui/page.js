// The invisible first child of each root: marks the root for the keyboard and for screen readers.
const names = { "lab-whole": "Lab", "lab-composer": "Compose a recipe" };

function describe(root) {
  for (const row of root.querySelectorAll(".lab-knob")) {
    const control = row.querySelector("input, select, textarea");
    if (!control) continue;
    const error = [...row.children].find((child) => child.classList.contains("lab-error"));
    if (error) {
      error.id ||= `lab-error-${Math.random().toString(36).slice(2)}`;
      error.setAttribute("role", "alert");
      control.setAttribute("aria-invalid", "true");
      control.setAttribute("aria-describedby", error.id);
    } else if (control.hasAttribute("aria-invalid")) {
      control.removeAttribute("aria-invalid");
      control.removeAttribute("aria-describedby");
    }
  }
  for (const button of root.querySelectorAll(".lab-toggle, .lab-help")) {
    button.setAttribute("aria-expanded", String(button.classList.contains("mod-active")));
  }
  for (const heading of root.querySelectorAll(".lab-heading")) {
    const title = heading.querySelector(".lab-toggle");
    heading.querySelector("select")?.setAttribute("aria-label", `choice of ${title.textContent.toLowerCase()}`);
    heading.querySelector(".lab-help")?.setAttribute("aria-label", title.title ? `about ${title.textContent}` : "about");
  }
  for (const button of root.querySelectorAll(".lab-reset")) button.setAttribute("aria-label", button.title);
  for (const live of root.querySelectorAll(".lab-verdict, .lab-status")) live.setAttribute("aria-live", "polite");
}

// JupyterLab's bindings match the focused element itself, before it looks at any ancestor: a mark on the root alone
// does not keep "b" from inserting a cell, the control that has the focus must carry it.
function keepKeys({ target }) {
  target.setAttribute("data-lm-suppress-shortcuts", "true");
}

function render({ el }) {
  el.hidden = true;
  let watcher = null;
  let waiting = 0;
  let marked = null;
  // The element is attached after render returns, so look for the root on the next frames.
  const attach = (tries) => {
    const root = el.closest(".lab-root");
    if (!root) {
      if (tries > 0) waiting = requestAnimationFrame(() => attach(tries - 1));
      return;
    }
    marked = root;
    root.addEventListener("focusin", keepKeys);
    root.setAttribute("role", "group");
    for (const [name, label] of Object.entries(names)) {
      if (root.classList.contains(name)) root.setAttribute("aria-label", label);
    }
    let planned = false;
    watcher = new MutationObserver(() => {
      if (planned) return;
      planned = true;
      requestAnimationFrame(() => {
        planned = false;
        describe(root);
      });
    });
    watcher.observe(root, { childList: true, subtree: true, attributes: true, attributeFilter: ["class"] });
    describe(root);
  };
  attach(600);
  return () => {
    cancelAnimationFrame(waiting);
    watcher?.disconnect();
    marked?.removeEventListener("focusin", keepKeys);
  };
}

export default { render };
