// What moves on the dashboard's pages: a live page asks for itself again and
// swaps in the parts that changed, times grow older, and a text can be
// copied. Everything else works without this.
(function () {
  "use strict";

  var QUICK = 2000, SLOW = 5000, QUICK_FOR = 120000, TIMEOUT = 15000;
  var opened = Date.now();
  // How far the browser's clock is behind control's, in milliseconds.
  var behind = 0;

  function span(ms) {
    var s = Math.floor(ms / 1000);
    if (s < 60) return s + " s";
    if (s < 3600) return Math.floor(s / 60) + " min";
    if (s < 172800) return Math.floor(s / 3600) + " h";
    return Math.floor(s / 86400) + " d";
  }

  // ago says the words that control says for a time.
  function ago(iso) {
    var d = Date.now() + behind - Date.parse(iso);
    if (Math.abs(d) < 1000) return "now";
    if (d < 0) return "in " + span(-d);
    if (d > 60 * 86400000) return iso.slice(0, 10);
    return span(d) + " ago";
  }

  function age(root) {
    root.querySelectorAll("time[datetime]").forEach(function (t) {
      var words = ago(t.getAttribute("datetime"));
      if (t.textContent !== words) t.textContent = words;
    });
  }

  // bare is a part's content without the words that only time changes.
  function bare(part) {
    var copy = part.cloneNode(true);
    copy.querySelectorAll("time").forEach(function (t) { t.textContent = ""; });
    copy.querySelectorAll("details").forEach(function (d) { d.removeAttribute("open"); });
    copy.querySelectorAll("input[name=key]").forEach(function (i) { i.removeAttribute("value"); });
    return copy.innerHTML;
  }

  // busy says that the person is at something in the part: it then stays.
  function busy(part) {
    var selection = window.getSelection();
    if (selection && !selection.isCollapsed && selection.containsNode(part, true)) return true;
    return part.querySelector("details[open] form") !== null;
  }

  // path says where in the part an element is, to find its successor by.
  function path(part, element) {
    if (element.id) return "#" + CSS.escape(element.id);
    var href = element.getAttribute("href");
    return href ? 'a[href="' + CSS.escape(href) + '"]' : element.tagName.toLowerCase();
  }

  function swap(old, fresh) {
    if (bare(old) === bare(fresh) || busy(old)) return;
    var active = document.activeElement;
    var focus = active && active !== old && old.contains(active) ? path(old, active) : null;
    var open = Array.prototype.map.call(old.querySelectorAll("details[open][id]"), function (d) { return d.id; });
    var scrolls = Array.prototype.map.call(old.querySelectorAll(".wide"), function (w) { return w.scrollLeft; });
    old.replaceChildren.apply(old, Array.prototype.slice.call(fresh.childNodes));
    old.className = fresh.className;
    old.hidden = fresh.hidden;
    open.forEach(function (id) { var d = document.getElementById(id); if (d) d.open = true; });
    old.querySelectorAll(".wide").forEach(function (w, i) { w.scrollLeft = scrolls[i] || 0; });
    if (focus) { var next = old.querySelector(focus); if (next) next.focus({ preventScroll: true }); }
    ready(old);
  }

  function take(html, date) {
    var page = new DOMParser().parseFromString(html, "text/html");
    behind = date ? Date.parse(date) - Date.now() : behind;
    if (Math.abs(behind) < 1500) behind = 0;
    document.querySelectorAll('[id^="live-"]').forEach(function (old) {
      var fresh = page.getElementById(old.id);
      if (fresh) swap(old, fresh);
    });
    // A part that is on one page and not on the other: the page is another.
    var here = document.querySelectorAll('main [id^="live-"]').length;
    if (here !== page.querySelectorAll('main [id^="live-"]').length && !document.querySelector("details[open] form")) location.reload();
  }

  function stale(words) {
    var p = document.getElementById("stale");
    if (!p) return;
    p.hidden = !words;
    if (p.textContent !== words) p.textContent = words;
  }

  var asking = false, timer = 0, good = Date.now();

  function ask() {
    window.clearTimeout(timer);
    if (asking || document.hidden) return;
    asking = true;
    var end = new AbortController();
    var late = window.setTimeout(function () { end.abort(); }, TIMEOUT);
    fetch(location.href, { headers: { "Thermite-Live": "1" }, credentials: "same-origin", cache: "no-store", signal: end.signal })
      .then(function (r) {
        if (r.status === 401) throw new Error("You are signed out: load the page again to sign in.");
        if (!r.ok) throw new Error("Control answers with an error (" + r.status + "); trying on.");
        return r.text().then(function (html) { take(html, r.headers.get("Date")); good = Date.now(); stale(""); });
      })
      .catch(function (e) {
        stale(e instanceof TypeError || e.name === "AbortError" ? "Control does not answer: this page is as it was " + span(Date.now() - good) + " ago. Trying on." : e.message);
      })
      .then(function () {
        window.clearTimeout(late);
        asking = false;
        timer = window.setTimeout(ask, Date.now() - opened < QUICK_FOR ? QUICK : SLOW);
      });
  }

  function ready(root) {
    age(root);
    root.querySelectorAll("button[data-copy]").forEach(function (b) {
      if (!navigator.clipboard) return;
      b.hidden = false;
      b.addEventListener("click", function () {
        navigator.clipboard.writeText(document.getElementById(b.dataset.copy).textContent).then(function () {
          b.textContent = "Copied";
          window.setTimeout(function () { b.textContent = "Copy"; }, 2000);
        });
      });
    });
  }

  // lines shows live lines as they come: the newest last, at most MOST.
  var MOST = 2000;
  function lines(section) {
    var list = section.querySelector("ol"), status = section.querySelector("[data-missed]"), pause = section.querySelector("[data-pause]");
    var only = section.dataset.only, all = section.dataset.all, missed = 0, held = [], paused = false;
    function add(line) {
      if (only && line.source !== only) return;
      var li = document.createElement("li"), t = document.createElement("time"), who = document.createElement("b"), text = document.createElement("span");
      t.setAttribute("datetime", line.at); t.title = line.at; t.textContent = ago(line.at);
      who.textContent = line.source; text.textContent = line.text;
      li.append(t, " ");
      if (all) { var of = document.createElement("span"); of.className = "muted"; of.textContent = line.rig + (line.run ? " / " + line.run : ""); li.append(of, " "); }
      li.append(who, " ", text);
      if (line.missed) { var gap = document.createElement("span"); gap.className = "flag"; gap.textContent = line.missed + " before it did not come"; li.append(" ", gap); }
      list.append(li);
      while (list.children.length > MOST) list.firstElementChild.remove();
    }
    function show(batch) {
      var end = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
      batch.forEach(add);
      var empty = section.querySelector(".empty");
      if (empty && list.children.length) empty.remove();
      if (end) list.scrollTop = list.scrollHeight;
    }
    var from = new EventSource(section.dataset.stream);
    from.addEventListener("lines", function (e) {
      var news = JSON.parse(e.data);
      missed += news.missed;
      if (missed) status.textContent = missed + " lines missed: this page fell behind";
      if (!paused) return show(news.lines);
      held = held.concat(news.lines);
      if (held.length > 500) { missed += held.length - 500; held = held.slice(-500); }
      pause.textContent = "Go on (" + held.length + ")";
    });
    pause.hidden = false;
    pause.addEventListener("click", function () {
      paused = !paused;
      pause.textContent = paused ? "Go on" : "Pause";
      if (!paused) { show(held); held = []; }
    });
    list.scrollTop = list.scrollHeight;
  }
  document.querySelectorAll("section.live").forEach(lines);

  ready(document);
  window.setInterval(function () { if (!document.hidden) age(document); }, 1000);
  if (document.body.dataset.live) {
    timer = window.setTimeout(ask, QUICK);
    document.addEventListener("visibilitychange", function () { if (!document.hidden) ask(); });
  }
})();
