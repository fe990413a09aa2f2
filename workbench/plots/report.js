// Draws the figures that the page carries as JSON, in the colours that the reader's system asks for.
"use strict";
(() => {
  const { figures, templates } = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const config = { responsive: true, displaylogo: false, typesetMath: false };

  const draw = (place) => {
    const figure = figures[place.dataset.figure + "/" + chosen(place)];
    const layout = { ...figure.layout, template: templates[dark.matches ? "dark" : "light"] };
    delete layout.width; // as wide as the page
    Plotly.react(place, figure.data, layout, config);
  };
  // One picture may exist in several variants (x axis, quantity): the select beside it names the variant.
  const chosen = (place) => {
    const select = place.parentElement.querySelector("select");
    return select ? select.value : "";
  };

  const places = [...document.querySelectorAll("[data-figure]")];
  places.forEach((place) => {
    draw(place);
    const select = place.parentElement.querySelector("select");
    if (select) select.addEventListener("change", () => draw(place));
  });
  dark.addEventListener("change", () => places.forEach(draw));
})();
