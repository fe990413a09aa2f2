// Run in the page: what of ours sticks out, scrolls sideways or is cut, in words.
([roots, scrolling]) => {
  const found = [];
  const shown = (node) => node.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const hides = (value) => value === "hidden" || value === "clip";
  const scrolls = (value) => value === "auto" || value === "scroll";
  const name = (node) => {
    const classes = typeof node.className === "string" ? node.className.trim().split(/\s+/).slice(0, 4).join(".") : "";
    return node.tagName.toLowerCase() + (classes && `.${classes}`);
  };
  // For screen readers alone: hidden from the eye on purpose.
  const spoken = (node) => {
    for (let outer = node; outer; outer = outer.parentElement) if (/^inset/.test(getComputedStyle(outer).clipPath)) return true;
    return false;
  };
  const sideways = (node) => found.push(`${name(node)} scrolls sideways: ${node.scrollWidth} px in ${node.clientWidth}`);

  const words = (node, text, root) => {
    const range = document.createRange();
    range.selectNodeContents(text);
    const box = range.getBoundingClientRect();
    if (box.width < 1) return;
    const said = `"${text.data.trim().slice(0, 60)}" of ${name(node)}`;
    for (let outer = node; outer && outer !== root.parentElement; outer = outer.parentElement) {
      const style = getComputedStyle(outer);
      const frame = outer.getBoundingClientRect();
      const wide = box.right > frame.right + 1.5 || box.left < frame.left - 1.5;
      const tall = box.bottom > frame.bottom + 3 || box.top < frame.top - 3;
      if ((tall && scrolls(style.overflowY)) || (wide && scrolls(style.overflowX))) return;
      // Data may be shortened with an ellipsis where the whole is a hover away; words of ours may not.
      const whole = node.closest("[title]:not([title=''])") && !outer.closest("button, label, th, h1, h2, h3, legend");
      if (wide && hides(style.overflowX) && !(style.textOverflow === "ellipsis" && whole)) found.push(`${said} is cut by ${name(outer)}`);
      if (tall && hides(style.overflowY) && !(style.webkitLineClamp !== "none" && whole)) found.push(`${said} is cut in height by ${name(outer)}`);
      if ((wide && hides(style.overflowX)) || (tall && hides(style.overflowY))) return;
    }
    const edge = root.getBoundingClientRect();
    if (box.right > edge.right + 2) found.push(`${said} sticks out by ${Math.round(box.right - edge.right)} px`);
  };

  for (const root of document.querySelectorAll(roots)) {
    if (!shown(root)) continue;
    for (let outer = root; outer && !outer.matches(".jp-Notebook, body"); outer = outer.parentElement) {
      if (outer.scrollWidth > outer.clientWidth + 1 && getComputedStyle(outer).overflowX !== "visible") sideways(outer);
    }
    for (const node of root.querySelectorAll("*")) {
      if (!shown(node) || node.closest("svg, canvas") || spoken(node)) continue;
      const { width, height } = node.getBoundingClientRect();
      if (width < 2 || height < 2) continue;
      const wide = scrolls(getComputedStyle(node).overflowX) && node.scrollWidth > node.clientWidth + 1;
      if (wide && !node.matches(scrolling) && !node.querySelector(`:scope > :is(${scrolling})`)) sideways(node);
      for (const child of node.childNodes) if (child.nodeType === Node.TEXT_NODE && child.data.trim()) words(node, child, root);
    }
  }
  return [...new Set(found)];
};
