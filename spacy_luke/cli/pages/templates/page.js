"use strict";
(() => {
  const kinds = [".tag", ".type", ".arc", ".link", ".questions .n"];
  const selector = kinds.map((x) => `${x}.spurious, ${x}.missed`).join(", ");
  const errors = [...document.querySelectorAll("#documents :is(" + selector + ")")];
  const [bar, only, previous, next, at] = [".bar", "#only", "#previous", "#next", "#at"].map((x) =>
    document.querySelector(x));
  let place = -0.5; // of the error that is shown, or between two errors
  let shown = null;

  function say(text) { at.textContent = text; }

  function leave() {
    if (shown) shown.classList.remove("here");
    shown = null;
  }

  function go(step) {
    if (!errors.length) return;
    leave();
    place = step > 0 ? Math.floor(place) + 1 : Math.ceil(place) - 1;
    place = (place + errors.length) % errors.length;
    shown = errors[place];
    const more = shown.closest("details");
    if (more) more.open = true;
    shown.classList.add("here");
    shown.scrollIntoView({ block: "center" });
    const title = shown.closest("article").querySelector("h3").textContent;
    say(`Error ${place + 1} of ${errors.length}: ${title}`);
  }

  function filter() {
    const on = document.documentElement.classList.toggle("errors-only");
    only.setAttribute("aria-pressed", on);
    document.querySelector(".none-left").hidden = !on || errors.length > 0;
    if (shown) shown.scrollIntoView({ block: "center" });
  }

  // After a jump to a document, its first error is next.
  function jumped() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || !target.closest("#documents")) return;
    leave();
    const after = errors.findIndex((x) =>
      target.compareDocumentPosition(x) & Node.DOCUMENT_POSITION_FOLLOWING);
    place = (after < 0 ? errors.length : after) - 0.5;
  }

  only.addEventListener("click", filter);
  previous.addEventListener("click", () => go(-1));
  next.addEventListener("click", () => go(1));
  addEventListener("hashchange", jumped);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const run = { n: () => go(1), p: () => go(-1), e: filter }[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  });
  previous.disabled = next.disabled = !errors.length;
  say(errors.length === 1 ? "1 error" : `${errors.length || "no"} errors`);
  bar.hidden = false;
  jumped();
})();
