"use strict";
// Filters, sorts and searches the traces of a night. Texts of traces become text nodes only. The address keeps the
// filters, so the form is read from it and written to it.
(() => {
  const PAGE = 100; // rows shown at a time
  const at = (id) => document.getElementById(id);
  const el = (name, text, cls) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (cls) made.className = cls;
    return made;
  };
  const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

  // Files call this function with their name and what they hold.
  const given = new Map(), loading = new Map();
  globalThis.leadline = (name, value) => given.set(name, value);
  function load(name, file) {
    if (!loading.has(name)) {
      loading.set(name, new Promise((resolve, reject) => {
        const script = el("script");
        script.src = `explorer/${file}.js`;
        script.onload = () => (given.has(name) ? resolve(given.get(name)) : reject(file));
        script.onerror = () => { loading.delete(name); reject(file); };
        document.head.append(script);
      }));
    }
    return loading.get(name);
  }
  const missing = (file) => { at("found").textContent = `explorer/${file}.js can't be read. Copy the whole folder of the night, then open this page again.`; };

  load("rows", "rows").then((data) => {
    const form = at("filters"), total = data.ids.length, every = [...data.ids.keys()];
    const number = (value, digits) => value.toFixed(digits);
    const shardOf = (i) => Math.floor(i / data.shard);
    const shard = (n) => load(n, `texts-${n}`);
    const words = []; // by row, in lower case: what the search looks through
    const searchable = (n) => shard(n).then((texts) => {
      if (words[n * data.shard] === undefined) texts.forEach((its, i) => {
        const row = n * data.shard + i;
        words[row] = [data.ids[row], ...its].join("\n").toLowerCase();
      });
    });

    const facets = data.facets.filter((f) => f.values.length);
    for (const f of facets) {
      f.select = el("select");
      f.select.name = f.name;
      f.options = f.values.map((value) => {
        const option = el("option");
        option.value = value;
        return option;
      });
      const any = el("option", "any");
      any.value = "";
      f.select.append(any, ...f.options);
      if (f.left) {
        const rarer = el("option", `and ${count(f.left)} rarer, not listed`);
        rarer.disabled = true;
        f.select.append(rarer);
      }
      const label = el("label", `${f.title} `);
      label.append(f.select);
      at("facets").append(label);
    }

    // null counts as last, whatever the direction
    const by = (column, sign) => (a, b) =>
      (column[a] === null) - (column[b] === null) || sign * (column[a] - column[b]) || a - b;
    const orders = {
      worst: ["worst first", null],
      low: [`${data.metric.title.toLowerCase()}, lowest first`, by(data.score, 1)],
      high: [`${data.metric.title.toLowerCase()}, highest first`, by(data.score, -1)],
      misused: ["most misused claims", by(data.claims_misused, -1)],
      contradicted: ["most contradicted claims", by(data.claims_contradicted, -1)],
      to_check: ["most claims to check", by(data.claims_to_check, -1)],
      context: ["context relevance, lowest first", by(data.context_relevance, 1)],
      answer: ["answer relevance, lowest first", by(data.answer_relevance, 1)],
      first: ["time, earliest first", by(data.time, 1)],
      last: ["time, latest first", by(data.time, -1)],
    };
    for (const [name, [title]] of Object.entries(orders)) {
      const option = el("option", title);
      option.value = name;
      form.elements.sort.append(option);
    }

    // The address

    function filters() {
      const set = new URLSearchParams();
      for (const [name, value] of new FormData(form)) if (value.trim() && !(name === "sort" && value === "worst")) set.append(name, value);
      return set;
    }
    function fromAddress() {
      const set = new URLSearchParams(location.hash.slice(1));
      form.reset();
      for (const f of facets) {
        f.strange?.remove(); // a value of another night, say: shown as chosen, and nothing has it
        const wanted = set.get(f.name);
        if (wanted && !f.values.includes(wanted)) {
          f.strange = el("option", wanted);
          f.select.append(f.strange);
        }
      }
      for (const [name, value] of set) {
        const field = form.elements.namedItem(name);
        if (!field) continue;
        if (field.type === "checkbox") field.checked = value === "1";
        else field.value = value;
      }
      if (!form.elements.sort.value) form.elements.sort.value = "worst";
    }

    // What matches

    function limits(f) {
      const place = f.values.indexOf(f.select.value);
      return f.select.value ? f.sets.map((own) => own.includes(place)) : null;
    }
    function matching(terms) {
      const wanted = facets.map(limits);
      const low = form.elements.from.value === "" ? null : Number(form.elements.from.value);
      const high = form.elements.to.value === "" ? null : Number(form.elements.to.value);
      const seen = facets.map((f) => new Array(f.sets.length).fill(0));
      const found = [];
      rows: for (const i of every) {
        const score = data.score[i];
        if (low !== null && !(score !== null && score >= low)) continue;
        if (high !== null && !(score !== null && score <= high)) continue;
        for (const term of terms) if (!words[i].includes(term)) continue rows;
        let against = -1; // the one property that does not fit: its counts show what another value would find
        for (let n = 0; n < facets.length; n++) {
          if (wanted[n] && !wanted[n][facets[n].codes[i]]) {
            if (against >= 0) continue rows;
            against = n;
          }
        }
        if (against < 0) {
          found.push(i);
          for (let n = 0; n < facets.length; n++) seen[n][facets[n].codes[i]]++;
        } else seen[against][facets[against].codes[i]]++;
      }
      facets.forEach((f, n) => {
        const each = new Array(f.values.length).fill(0);
        f.sets.forEach((own, code) => { for (const place of own) each[place] += seen[n][code]; });
        f.options.forEach((option, place) => { option.textContent = `${f.shown[place]} (${count(each[place])})`; });
      });
      return found;
    }
    function grouped(found) {
      const groups = new Map();
      for (const i of found) {
        const key = data.question[i] ?? `row ${i}`;
        if (groups.has(key)) groups.get(key).push(i);
        else groups.set(key, [i]);
      }
      return [...groups.values()];
    }

    // Rows

    const named = Object.fromEntries(data.facets.map((f) => [f.name, f]));
    const has = (name, i) => named[name].sets[named[name].codes[i]].map((place) => named[name].shown[place]);
    function figure(value, digits, status, i) {
      const why = data.statuses[status];
      return value === null ? el("span", why.sets[why.codes[i]][0] ?? "n/a", "absent") : document.createTextNode(number(value, digits));
    }
    function cell(title, ...parts) {
      const made = el("td", undefined, "n");
      made.dataset.label = title;
      made.append(...parts);
      return made;
    }
    function asked(i, others) {
      const made = el("th", undefined, "question");
      made.scope = "row";
      const shown = el(i < data.pages.length ? "a" : "bdi", i < data.texts ? "…" : "text removed");
      if (i < data.pages.length) shown.href = `traces/${data.pages[i]}.html`;
      made.append(shown);
      const notes = el("small");
      notes.append(el("bdi", data.ids[i], "id"), ...has("pattern", i).map((p) => ` · ${p}`));
      const [review] = has("review", i);
      if (review !== "not reviewed") notes.append(` · ${review}`);
      if (i >= data.pages.length) notes.append(" · no page");
      made.append(notes);
      if (i < data.texts) shard(shardOf(i)).then((texts) => {
        const [question, answer] = texts[i % data.shard];
        shown.replaceChildren(i < data.pages.length ? el("bdi", question || data.ids[i]) : question || data.ids[i]);
        if (i < data.pages.length) return;
        const text = el("p", answer || "The answer is empty.", "answer-text");
        text.dir = "auto";
        made.append(unfolding("Answer", [text], made));
      }, missing);
      if (others.length) made.append(unfolding(`${plural(others.length, "more answer")} to this question`, others));
      return made;
    }
    // A button that shows nodes below its own place, or rows below its row.
    function unfolding(title, nodes, parent) {
      const button = el("button", title, "unfold");
      button.type = "button";
      button.setAttribute("aria-expanded", "false");
      let shown;
      button.addEventListener("click", () => {
        const open = button.getAttribute("aria-expanded") !== "true";
        button.setAttribute("aria-expanded", String(open));
        if (!open) for (const node of shown) node.remove();
        else if (parent) (shown = nodes).forEach((node) => parent.append(node));
        else button.closest("tr").after(...(shown = nodes.map((i) => row([i], "repeat"))));
      });
      return button;
    }
    const layered = at("rows").parentElement.tHead.rows[0].cells.length > 6; // recipes of citations have no diagnosis
    function row([i, ...others], cls) {
      const made = el("tr", undefined, cls);
      const who = cell("Generator", el("bdi", has("generator", i)[0] ?? ""), el("small", has("app", i)[0] ?? ""));
      who.className = "";
      made.append(asked(i, others), who);
      if (layered) {
        const diagnosis = named.diagnosis.values[named.diagnosis.sets[named.diagnosis.codes[i]][0]];
        const cause = cell("Diagnosis", el("span", has("diagnosis", i)[0], `layer d-${diagnosis}`));
        cause.className = "";
        made.append(cause);
      }
      made.append(
        cell(data.metric.title, figure(data.score[i], data.metric.digits, "status", i)),
        cell("Misused", data.claims_judged[i] ? count(data.claims_misused[i]) : "n/a"),
        cell("Context", figure(data.context_relevance[i], 2, "context_relevance_status", i)),
        cell("Answer", figure(data.answer_relevance[i], 2, "answer_relevance_status", i)));
      return made;
    }

    let groups = [], shown = 0, turn = 0;
    function more() {
      const next = groups.slice(shown, shown + PAGE);
      at("rows").append(...next.map((g) => row(g)));
      shown += next.length;
      at("more").hidden = shown >= groups.length;
    }
    function show(found) {
      groups = form.elements.group.checked ? grouped(found) : found.map((i) => [i]);
      shown = 0;
      at("rows").replaceChildren();
      more();
      at("results").hidden = !found.length;
      const questions = form.elements.group.checked ? `, ${plural(groups.length, "question")}` : "";
      at("found").textContent = found.length
        ? `${count(found.length)} of ${plural(total, "trace")}${questions}.`
        : total ? "No trace matches. Clear the filters to see all." : "This night has no traces under this recipe.";
    }
    async function refresh() {
      const mine = ++turn;
      const set = filters(), address = `#${set}`;
      if (address !== (location.hash || "#")) history.replaceState(null, "", address);
      const terms = (set.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
      if (terms.length && total) {
        at("found").textContent = "Reading the texts…";
        const shards = [...Array(shardOf(total - 1) + 1).keys()];
        try { await Promise.all(shards.map(searchable)); } catch (file) { missing(file); return; }
        if (mine !== turn) return; // another filter was set meanwhile
      }
      const found = matching(terms), order = orders[form.elements.sort.value][1];
      show(order ? found.sort(order) : found);
    }

    let wait;
    form.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(refresh, 120); });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(refresh));
    at("more").addEventListener("click", more);
    addEventListener("hashchange", () => { fromAddress(); refresh(); });
    form.hidden = at("searched").hidden = false;
    fromAddress();
    refresh();
  }, missing);
})();
