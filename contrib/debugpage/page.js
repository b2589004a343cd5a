"use strict";
// What the page cannot do by itself: stay up to date, search while one types, and
// read the chart point by point. All of it works on what the server has sent.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const live = $("#live"), search = $("#search"), field = $("#q"), status = $("#status");
  const every = 2000; // milliseconds between refreshes
  let timer = 0, asked = 0, silent = true;

  // refresh asks for the page again, and puts what is new in place of what was.
  async function refresh() {
    const mine = ++asked;
    let text;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status + " " + answer.statusText);
      text = await answer.text();
    } catch (e) {
      if (mine === asked) say("Not refreshed: " + e.message);
      return;
    }
    if (mine !== asked) return; // a later one is on its way
    const fresh = $("#content", new DOMParser().parseFromString(text, "text/html"));
    if (!fresh) return;
    const was = remember();
    $("#content").replaceWith(document.adoptNode(fresh));
    restore(was);
    charts();
    if (!silent) say("Refreshed");
    silent = true;
  }

  function say(text) { status.textContent = text; }

  // Where the reader was: the focus, what is open, how far lists are scrolled.
  function remember() {
    const focus = document.activeElement, details = focus && focus.closest("details[id]"), plots = focus && focus.closest(".chart");
    return {
      focus: details ? "#" + details.id + " > " + focus.localName : plots ? "[aria-labelledby=" + plots.getAttribute("aria-labelledby") + "] .plots" : "",
      open: new Map([...document.querySelectorAll("details[id]")].map(d => [d.id, d.open])),
      scrolled: new Map([...document.querySelectorAll(".columns section")].map(s => [s.getAttribute("aria-labelledby"), $("ol", s) ? $("ol", s).scrollTop : 0])),
    };
  }

  function restore(was) {
    for (const d of document.querySelectorAll("details[id]")) if (was.open.has(d.id)) d.open = was.open.get(d.id);
    for (const s of document.querySelectorAll(".columns section")) {
      const list = $("ol", s);
      if (list) list.scrollTop = was.scrolled.get(s.getAttribute("aria-labelledby")) || 0;
    }
    const focus = was.focus && $(was.focus);
    if (focus) focus.focus({ preventScroll: true });
  }

  function setLive(on) {
    live.setAttribute("aria-pressed", String(on));
    clearInterval(timer);
    timer = 0;
    if (on) {
      refresh();
      timer = setInterval(() => {
        if (!document.hidden && String(getSelection()) === "") refresh();
      }, every);
    }
    say(on ? "Refreshing every two seconds" : "No longer refreshing");
  }

  live.hidden = false;
  live.addEventListener("click", () => setLive(!timer));
  $("#refresh").addEventListener("click", e => {
    if (e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    silent = false;
    refresh();
  });

  let typing = 0;
  field.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      const to = new URL(location.href);
      if (field.value) to.searchParams.set("q", field.value); else to.searchParams.delete("q");
      history.replaceState(null, "", to);
      $("#refresh").href = to.search || "?";
      refresh();
    }, 200);
  });
  search.addEventListener("submit", e => e.preventDefault());

  // Charts: a cursor through all plots of an upstream, moved by pointer or arrow keys.
  function charts() { for (const c of document.querySelectorAll(".chart")) chart(c); }

  function chart(root) {
    const data = JSON.parse($("script", root).textContent), plots = $(".plots", root);
    const each = [...root.querySelectorAll(".plot")].map((p, i) => ({
      ...data.plots[i], took: new Set(data.plots[i].took),
      lines: $(".lines", p), cursor: $(".cursor", p), reading: $(".reading", p), now: $(".reading", p).innerHTML,
      weight: p.querySelector(".reading data:last-child").value,
    }));
    const out = $(".at", root), width = Number(root.dataset.width), last = data.picks.length - 1;
    let at = -1;

    function show(x) {
      at = Math.max(0, Math.min(last, x));
      const pick = data.picks[at];
      out.textContent = (pick.seq ? "pick " + pick.seq + ", " : "") + pick.time + " " + pick.text;
      for (const p of each) {
        p.cursor.setAttribute("d", "M" + (at + .5) + " 0V100");
        p.reading.textContent = p.cw[at] === null ? "not recorded" :
          "cw " + minus(p.cw[at]) + " · ew " + minus(p.ew[at]) + " of " + p.weight + (p.took.has(at) ? " · taken" : p.why[at] ? " · " + p.why[at] : "");
      }
    }
    function leave() {
      at = -1;
      out.textContent = "";
      for (const p of each) {
        p.cursor.setAttribute("d", "");
        p.reading.innerHTML = p.now;
      }
    }
    plots.tabIndex = 0;
    plots.setAttribute("role", "group");
    plots.setAttribute("aria-label", "Picks: arrow keys move through them");
    plots.addEventListener("pointermove", e => {
      const box = each[0].lines.getBoundingClientRect();
      if (e.clientX >= box.left && e.clientX <= box.right) show(Math.floor((e.clientX - box.left) / box.width * width));
      else if (at >= 0) leave();
    });
    plots.addEventListener("pointerleave", leave);
    plots.addEventListener("blur", leave);
    plots.addEventListener("keydown", e => {
      const from = at < 0 ? last : at;
      const to = { ArrowLeft: from - 1, ArrowRight: from + 1, PageUp: from - 10, PageDown: from + 10, Home: 0, End: last }[e.key];
      if (to !== undefined) { show(to); e.preventDefault(); }
      else if (e.key === "Escape") leave();
    });
  }

  function minus(n) { return String(n).replace("-", "\u2212"); }

  charts();
})();
