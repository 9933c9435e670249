"use strict";
// Shows one claim at a time, keeps its labels in this browser, and makes the JSON lines that
// `leadline review import` reads. Texts of traces become text nodes only.
(() => {
  const sheet = JSON.parse(document.getElementById("tasks").textContent);
  const { tasks, labels, undecided, key } = sheet;
  const at = (id) => document.getElementById(id);
  const el = (name, text, cls) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (cls) made.className = cls;
    return made;
  };
  const names = Object.keys(labels);
  const words = (name) => name === "cant_tell" ? "can't tell" : name.replaceAll("_", " ");

  // The labels: {claims: {id: {label, misused, at}}, reviewer}. A browser may refuse to keep it.
  let state = { claims: {}, reviewer: sheet.reviewer || "" };
  let kept = true;
  try { state = JSON.parse(localStorage.getItem(key)) || state; } catch { kept = false; }
  const keep = () => {
    try { localStorage.setItem(key, JSON.stringify(state)); } catch { kept = false; }
    at("notice").textContent = kept ? "" : "This browser does not keep your labels. Download them before you close the page.";
  };

  const cites = (task) => sheet.answers[task.answer].chunks.some((c) => task.cited.includes(c.chunk_id));
  const done = (task) => {
    const it = state.claims[task.claim_id];
    return Boolean(it && it.label && (it.misused !== null || undecided.includes(it.label)));
  };
  let now = Math.max(0, tasks.findIndex((t) => !done(t)));

  function show() {
    const finished = tasks.filter(done).length;
    at("progress").textContent = tasks.length
      ? `Claim ${now + 1} of ${tasks.length}; ${finished} labeled, ${tasks.length - finished} open.`
      : "There is nothing to label.";
    at("bar").max = Math.max(1, tasks.length);
    at("bar").value = finished;
    at("task").hidden = !tasks.length;
    at("previous").disabled = now <= 0;
    at("next").disabled = now >= tasks.length - 1;
    at("open").disabled = finished === tasks.length;
    at("download").disabled = !Object.keys(state.claims).length;
    if (!tasks.length) return;
    const task = tasks[now], { question, answer, chunks } = sheet.answers[task.answer];
    const it = state.claims[task.claim_id] || { label: null, misused: null, comment: "" };
    at("question").textContent = question;
    at("claim").textContent = task.claim;
    const about = [task.adjudicated ? "Reviewers disagree on this claim: your label decides." : "", task.judge ? `The judge: ${JSON.stringify(task.judge)}` : ""];
    at("about").textContent = about.filter(Boolean).join(" ");
    const characters = Array.from(answer), [start, end] = task.span; // spans count code points, strings of a browser do not
    at("answer").replaceChildren(
      characters.slice(0, start).join(""), el("mark", characters.slice(start, end).join("")), characters.slice(end).join(""));
    at("chunks").replaceChildren(...[true, false].flatMap((cited) =>
      chunks.filter((c) => task.cited.includes(c.chunk_id) === cited).map((c) => {
        const passage = el("div", undefined, cited ? "passage cited" : "passage");
        passage.append(el("h3", `${cited ? "Cited: " : ""}[${c.chunk_id}] ${c.title || ""}`.trim()), el("p", c.text, "text"));
        return passage;
      })));
    for (const button of at("labels").children) button.setAttribute("aria-pressed", String(button.dataset.label === it.label));
    at("comment").value = it.comment || "";
    at("misuse").hidden = !(it.label && !undecided.includes(it.label) && it.label !== "unsupported" && cites(task));
    for (const button of at("misuse").querySelectorAll("button")) button.setAttribute("aria-pressed", String(String(it.misused) === button.dataset.misused));
  }

  function go(to) {
    now = Math.min(Math.max(to, 0), tasks.length - 1);
    show();
    scrollTo(0, 0);
  }
  function nextOpen() {
    const order = [...tasks.keys()].map((i) => (now + 1 + i) % tasks.length);
    const found = order.find((i) => !done(tasks[i]));
    if (found === undefined) show(); else go(found);
  }
  function record(change) {
    const task = tasks[now];
    const it = { label: null, misused: null, comment: "", ...state.claims[task.claim_id], ...change, at: new Date().toISOString() };
    if ("label" in change) {
      // What cites nothing misuses nothing; what no chunk supports, none that it cites does.
      it.misused = undecided.includes(it.label) ? null : !cites(task) ? false : it.label === "unsupported" ? true : null;
    }
    state.claims[task.claim_id] = it;
    keep();
    if ("comment" in change) return at("download").disabled = false; // whoever writes stays where they are
    if (done(task)) nextOpen(); else show();
  }
  function lines() {
    return tasks.filter((t) => state.claims[t.claim_id]?.label).map((t) => {
      const { label, misused, comment, at: when } = state.claims[t.claim_id];
      const line = { trace_id: t.trace_id, claim_id: t.claim_id, label, misused, reviewer: state.reviewer, reviewed_at: when, sampling: t.sampling };
      if (comment) line.comment = comment;
      if (t.adjudicated) line.adjudicated = true;
      return JSON.stringify(line) + "\n";
    }).join("");
  }
  function download() {
    if (!state.reviewer) {
      at("notice").textContent = "Give your name first: it goes with each of your labels.";
      at("reviewer").focus();
      return;
    }
    const link = el("a");
    link.href = URL.createObjectURL(new Blob([lines()], { type: "application/jsonl" }));
    link.download = `labels-${state.reviewer.replace(/[^\p{L}\p{N}]+/gu, "-")}.jsonl`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }

  names.forEach((name, i) => {
    const button = el("button", `${words(name)} `);
    button.type = "button";
    button.dataset.label = name;
    button.append(el("kbd", String(i + 1)), el("small", labels[name]));
    button.addEventListener("click", () => record({ label: name }));
    at("labels").append(button);
  });
  for (const button of at("misuse").querySelectorAll("button")) button.addEventListener("click", () => record({ misused: button.dataset.misused === "true" }));
  at("comment").addEventListener("input", () => record({ comment: at("comment").value.trim() }));
  at("reviewer").value = state.reviewer;
  at("reviewer").addEventListener("input", () => { state.reviewer = at("reviewer").value.trim(); keep(); });
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  at("previous").addEventListener("click", () => go(now - 1));
  at("next").addEventListener("click", () => go(now + 1));
  at("open").addEventListener("click", nextOpen);
  at("download").addEventListener("click", download);
  at("reset").addEventListener("click", () => {
    if (!confirm("Forget all labels that this browser keeps of this page?")) return;
    state = { claims: {}, reviewer: state.reviewer };
    keep();
    go(0);
  });
  document.addEventListener("keydown", (event) => {
    if (["INPUT", "TEXTAREA"].includes(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey || !tasks.length) return;
    if (event.repeat && !event.key.startsWith("Arrow")) return; // a key held down would label the claims that follow
    const label = names[Number(event.key) - 1];
    if (label) record({ label });
    else if ((event.key === "y" || event.key === "n") && !at("misuse").hidden) record({ misused: event.key === "n" });
    else if (event.key === "ArrowRight") go(now + 1);
    else if (event.key === "ArrowLeft") go(now - 1);
    else if (event.key === "o") nextOpen();
    else return;
    event.preventDefault();
  });
  globalThis.leadlineLines = lines; // what a download holds, for who wants it in another way
  keep();
  show();
})();
