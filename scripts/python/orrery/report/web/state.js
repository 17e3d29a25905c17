"use strict";
// What is shown, in the address of the page: section, run, span of time, NPUs, search, cause. A link to the page with it shows the same.

const state = new Map();

/** Reads the state from the address: "#timeline&run=1&from=0&to=5". */
function readState() {
  state.clear();
  for (const piece of location.hash.slice(1).split("&")) {
    const at = piece.indexOf("=");
    if (at < 0) {
      if (piece) state.set("section", decodeURIComponent(piece));
    } else state.set(piece.slice(0, at), decodeURIComponent(piece.slice(at + 1)));
  }
}

/** Changes some parts of the state and the address; null takes a part away. */
function setState(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") state.delete(name);
    else state.set(name, String(value));
  }
  const pieces = [...state].filter(([name]) => name !== "section").map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  history.replaceState(null, "", `#${[state.get("section") || "", ...pieces].filter(Boolean).join("&")}`);
}

/** Shows a section at the top of the window, and says so in the address. */
function goTo(section) {
  setState({section});
  document.getElementById(section)?.scrollIntoView();
}

/** Fills the table of contents with links to these sections, and marks the one that is being read. */
function fillContents(sections) {
  const place = document.getElementById("sections");
  const links = new Map(sections.map((part) => [part.id, element("a", {href: `#${part.id}`, click: (event) => {
    event.preventDefault();
    goTo(part.id);
  }}, part.querySelector("h2").textContent)]));
  place.replaceChildren(...links.values());
  const mark = () => {
    const line = place.getBoundingClientRect().bottom + 24;
    const read = [...sections].reverse().find((part) => part.getBoundingClientRect().top <= line) || sections[0];
    for (const [id, link] of links) {
      const isHere = read && id === read.id;
      if (isHere && link.getAttribute("aria-current") !== "true" && place.scrollWidth > place.clientWidth)
        place.scrollLeft = link.offsetLeft - place.clientWidth / 2 + link.offsetWidth / 2;
      link.setAttribute("aria-current", String(isHere));
    }
  };
  if (place.mark) removeEventListener("scroll", place.mark);
  place.mark = mark;
  addEventListener("scroll", mark, {passive: true});
  mark();
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

/** Draws the page light or dark, and says so in the address unless the browser prefers the same. */
function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  for (const redraw of redraws) redraw();
  setState({theme: dark === prefersDark.matches ? null : dark ? "dark" : "light"});
}

/** Takes the theme of the address or of the browser, and lets the button change it. */
function startTheme() {
  prefersDark.addEventListener("change", () => setTheme(prefersDark.matches));
  document.getElementById("theme").addEventListener("click", () => setTheme(!document.documentElement.classList.contains("dark")));
  setTheme(state.has("theme") ? state.get("theme") === "dark" : prefersDark.matches);
}

readState();
