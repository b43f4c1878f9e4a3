/* Alerts: the list with their texts, how each one appeared in the figures, verdicts and mutes, and the bands that charts draw.
 *
 * The list begins with GET /alerts and follows the events: an open, its updates and its close are one entry. Verdicts are not
 * published, so those of other people arrive when the list is asked for again, once a minute.
 *
 * An opened entry draws the values that the alert's own opening event carries (`history`), with the range that is normal
 * (`top[].normal`): the page needs no rows of anybody. These charts exist while the entry is open and are destroyed with it. At
 * most KEPT alerts are held, the closed ones dropped first. */
"use strict";

(() => {
    const KEPT = 200, SHOWN = 6;
    const nameOf = (a) => [a.key ?? "", a.epoch ?? "", a.alert].join("/");
    const rank = {serious: 3, warning: 2, notice: 1};

    page.newAlerts = () => ({byName: new Map(), past: [], shown: SHOWN, open: null, due: 0, asked: 0});

    /* ---- what is known of them */

    const sorted = (view) => [...view.alerts.byName.values()].sort((a, b) =>
        (b.state === "open") - (a.state === "open") || (a.state === "open" ? (rank[b.severity] || 2) - (rank[a.severity] || 2) : 0) ||
        b.opened - a.opened || (nameOf(a) < nameOf(b) ? -1 : 1));

    const severity = (a) => (rank[a.severity] ? a.severity : "quality"); // alerts of quality have none

    /* Alerts have the times of their samples. Samples of an old log lie before the stream's own beginning (its epoch, in
     * microseconds): an alert of them that is open has not lasted until now, but until its newest event. */
    const replayed = (a) => page.known(a.epoch) && a.opened < a.epoch / 1e6 - 3600;
    page.alertEnd = (a) => (page.known(a.closed) ? a.closed : Math.max(replayed(a) ? a.ts ?? a.opened : page.now(), a.opened));

    /* How long a closed alert lasted. Where its lines count rows, the times are those of arrival, and the closing text has the rows. */
    const lasted = (a) => (/ after ([\d,]+ rows?)\b/.exec(a.closing || "") || [])[1] || page.seconds(Math.max(a.closed - a.opened, 0));

    const bands = (view) => {
        const all = new Map([...view.alerts.past, ...view.alerts.byName.values()].map((a) => [nameOf(a), a]));
        view.bands = [...all.values()].filter((a) => page.known(a.opened)).sort((a, b) => a.opened - b.opened);
    };

    const bounded = (view) => {
        const list = sorted(view);
        view.alerts.older = view.alerts.older || list.length > KEPT;
        for (const old of list.slice(KEPT))
            view.alerts.byName.delete(nameOf(old));
    };

    const folded = (a) => ({...a, opened: a.opened ?? a.since ?? a.ts});

    page.askAlerts = (view) => page.paced(view.alerts, "due", 60000, async () => {
        const turn = ++view.alerts.asked;
        const answer = await page.get("/alerts", {stream: view.name, limit: KEPT});
        if (turn !== view.alerts.asked)
            return void setTimeout(() => (view.alerts.due = 0)); // an event overtook it
        view.alerts.older = answer.more;
        view.alerts.byName = new Map(answer.alerts.filter((a) => a.kind !== "mute").map((a) => [nameOf(a), folded(a)]));
        bounded(view);
        page.drawAlerts(view);
    });

    /* Alerts of the range that is shown, for the bands. */
    page.askPastAlerts = async (view) => {
        const [from, to] = page.time.window();
        view.alerts.past = [];
        if (!page.time.live || page.time.span === 0 || page.time.span > 86400) {
            const answer = await page.get("/history/alerts", {stream: view.name, from, to});
            view.alerts.past = answer.alerts.slice(0, 500).map((a) => ({...folded(a), history: undefined, top: undefined}));
        }
        bands(view);
    };

    page.takeAlert = (view, e) => {
        if (e.kind === "mute") {
            view.alerts.due = view.mutesDue = 0;
            return;
        }
        const known = view.alerts.byName, name = nameOf(e), a = known.get(name);
        view.alerts.asked++; // an answer on its way is older than this event
        if (!a && e.state === "close")
            return;
        if (!a || e.state === "open")
            known.set(name, {...e, opened: e.ts, closed: null, verdict: a?.verdict ?? null, updates: 0});
        else if (e.state === "close")
            Object.assign(a, {state: "closed", ts: e.ts, closed: e.ts, closing: e.text});
        else
            Object.assign(a, {ts: e.ts, text: e.text, severity: e.severity ?? a.severity, updates: (Number(a.updates) || 0) + 1,
                keys: e.keys ?? a.keys, key_alerts: e.key_alerts ?? a.key_alerts, keys_count: e.keys_count ?? a.keys_count});
        bounded(view);
        page.drawAlerts(view);
    };

    /* ---- the drawn values */

    const near = (xs, t) => xs.reduce((best, x, i) => (Math.abs(x - t) < Math.abs(xs[best] - t) ? i : best), 0);

    const normalOf = (alert, feature) => {
        const found = (alert.top || []).find((f) => String(f.feature) === String(feature));
        const range = found?.normal;
        return {value: found?.value, range: Array.isArray(range) && page.known(range[0]) && page.known(range[1]) ? range : null};
    };

    const drawn = (alert, drawing) => {
        const {feature, times, values} = drawing, {value, range} = normalOf(alert, feature);
        const rows = times.map((t, i) => [1000 * t, page.known(values[i]) ? values[i] : null]);
        const given = rows.map((r) => r[1]).filter(page.known);
        const figure = page.make("figure", {class: "drawn"}), plot = page.make("div", {class: "plot small", role: "img"});
        const text = page.clean(feature) + ": " + (page.known(value) ? page.number(value) : "no value") +
            (range ? ", normal " + page.number(range[0]) + " to " + page.number(range[1]) : ", normal range not known");
        figure.append(page.make("figcaption", {}, page.make("b", {}, page.make("bdi", {}, String(feature))),
            " " + text.slice(page.clean(feature).length + 2)), plot);
        plot.setAttribute("aria-label", text + "; " + given.length + " values from " + page.moment(times[0], true) + " to " +
            page.moment(times.at(-1), true) + (given.length ? ", lowest " + page.number(Math.min(...given)) + ", highest " + page.number(Math.max(...given)) : ""));
        figure.draw = () => {
            const colour = page.palette(), all = given.concat(range || []), low = Math.min(...all), high = Math.max(...all), pad = 0.12 * (high - low) || 1;
            const last = rows.length ? near(times, alert.opened) : 0;
            figure.graph?.destroy();
            figure.graph = new Dygraph(plot, rows, {
                labels: ["time", "value"], colors: [colour.lines[1]], axes: page.axes(page.number, colour, 24), legend: "never", strokeWidth: 1.6, rightGap: 10,
                valueRange: [low - pad, high + pad], interactionModel: {}, xAxisHeight: 20, highlightCircleSize: 3, drawPoints: rows.length < 40, pointSize: 1.5,
                underlayCallback: (context, area, graph) => {
                    if (range) {
                        const top = Math.max(graph.toDomYCoord(range[1]), area.y), bottom = Math.min(graph.toDomYCoord(range[0]), area.y + area.h);
                        context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--normal").trim();
                        context.fillRect(area.x, top, area.w, Math.max(bottom - top, 1));
                        context.fillStyle = colour.text;
                        context.font = "10px system-ui, sans-serif";
                        if (bottom - top > 14)
                            context.fillText("normal", area.x + 4, bottom - 4);
                    }
                    if (rows.length) {
                        context.fillStyle = colour.bands[severity(alert)] || colour.bands.warning;
                        context.fillRect(graph.toDomXCoord(1000 * times[last]), area.y, 1.5, area.h);
                    }
                },
            });
        };
        return figure;
    };

    /* ---- verdict and mute */

    const SAID = {
        true: "Recorded: the alert was right. Its rows stay out of what is normal, and the next one like it is found again.",
        false: "Recorded: false alarm. Its rows are learned as normal, and for 28 days this detector stays quiet about this feature unless it is more surprising.",
    };

    const sendVerdict = async (view, alert, verdict, detail) => {
        const result = detail.querySelector(".result"), buttons = detail.querySelectorAll(".right, .false");
        buttons.forEach((b) => (b.disabled = true));
        page.set(result, "sending the verdict …");
        try {
            const path = "/alerts/" + encodeURIComponent(alert.alert) + "/verdict?" + new URLSearchParams({stream: view.name});
            await page.request("POST", path, {verdict, ...(alert.key !== undefined ? {key: alert.key} : {})});
            alert.verdict = verdict;
            page.set(result, SAID[verdict]);
            page.drawAlerts(view);
        } catch (error) {
            page.set(result, "Not recorded: " + error.message);
            buttons.forEach((b) => (b.disabled = false));
        }
    };

    const muteForm = (view, alert) => {
        const feature = alert.top?.[0]?.feature, form = page.make("form", {class: "mute", hidden: true});
        const choices = [];
        if (alert.key && feature !== undefined)
            choices.push([page.clean(feature) + " of " + page.clean(alert.key), {key: alert.key, sensor: String(feature)}]);
        if (alert.key)
            choices.push(["all of " + page.clean(alert.key), {key: alert.key}]);
        else if (feature !== undefined)
            choices.push([page.clean(feature), {sensor: String(feature)}]);
        choices.push(["the whole stream", {}]);
        const what = page.make("select", {name: "what"}, ...choices.map(([text], i) => page.make("option", {value: i}, text)));
        const long = page.make("select", {name: "for"}, ...["30min", "2h", "8h", "1d", "7d"].map((t) => page.make("option", {value: t, selected: t === "2h"}, t)));
        const reason = page.make("input", {name: "reason", maxlength: 120, placeholder: "new bearing", autocomplete: "off"});
        const result = page.make("p", {class: "result", role: "status"});
        form.append(page.make("label", {}, "Mute ", what), page.make("label", {}, " for ", long), page.make("label", {}, " reason ", reason), " ",
            page.make("button", {type: "submit"}, "Mute"), result);
        form.addEventListener("submit", async (event) => {
            event.preventDefault();
            try {
                const reply = await page.request("POST", "/mutes?" + new URLSearchParams({stream: view.name}),
                    {for: long.value, ...choices[what.value][1], ...(reason.value ? {reason: reason.value} : {})});
                page.set(result, "Muted until " + page.moment(reply.mute?.until) + ". Alerts still open and close; their messages are held back." + (reply.note ? " " + reply.note : ""));
                view.mutesDue = 0;
                page.askMutes(view);
            } catch (error) {
                page.set(result, "Not muted: " + error.message);
            }
        });
        return form;
    };

    const fact = (list, name, value) => value !== undefined && value !== null && value !== "" &&
        list.append(page.make("div", {}, page.make("dt", {}, name), page.make("dd", {}, page.make("bdi", {}, String(value)))));

    const DETECTORS = {row: "all features together", value: "one value against all earlier ones", level: "its mean against time and context",
        forecast: "its forecast from all that is known", step: "its last samples against those before", spread: "how much it varies", lasting: "small surprises that add up"};

    const openDetail = (view, alert, detail) => {
        const facts = page.make("dl", {class: "facts"});
        fact(facts, "opened", page.moment(alert.opened, true));
        fact(facts, "closed", page.known(alert.closed) ? page.moment(alert.closed, true) + ", after " + lasted(alert) : "still open");
        fact(facts, "key", alert.key || undefined);
        fact(facts, "keys", alert.keys_count ? alert.keys_count + ": " + (alert.keys || []).join(", ") : undefined);
        fact(facts, "found by", alert.detector ? alert.detector + ", " + (DETECTORS[alert.detector] || "") : alert.rule ? "rule " + alert.rule : alert.kind);
        fact(facts, "surprise", page.known(alert.surprise) ? page.number(alert.surprise) : undefined);
        fact(facts, "expected", page.known(alert.expected) ? page.number(alert.expected) : undefined);
        fact(facts, "updates", alert.updates || undefined);
        if (alert.kind === "quality")
            fact(facts, "changed", [alert.before, alert.after].map((x) => (alert.measure === "error" ? page.percent(x) : page.number(x))).join(" → "));
        const pictures = (Array.isArray(alert.history) ? alert.history : []).filter((h) => h.times?.length && h.values).map((h) => drawn(alert, h));
        detail.append(facts, ...pictures);
        if (!pictures.length)
            for (const f of alert.top || []) {
                const {range} = normalOf(alert, f.feature);
                detail.append(page.make("p", {class: "note"}, page.make("bdi", {}, String(f.feature)),
                    " " + page.number(f.value) + (range ? ", normal " + page.number(range[0]) + " to " + page.number(range[1]) : "")));
            }
        const actions = page.make("p", {class: "actions"}), form = muteForm(view, alert);
        if (alert.kind === "novelty")
            actions.append(page.make("button", {type: "button", class: "right", onclick: () => sendVerdict(view, alert, true, detail)}, "It was right"),
                page.make("button", {type: "button", class: "false", onclick: () => sendVerdict(view, alert, false, detail)}, "False alarm"));
        else
            detail.append(page.make("p", {class: "note"}, "Alerts of rules and of quality do not learn from verdicts. A mute holds back their messages for a while."));
        actions.append(page.make("button", {type: "button", class: "silence", "aria-expanded": "false", onclick: (e) => {
            form.hidden = !form.hidden;
            e.currentTarget.setAttribute("aria-expanded", String(!form.hidden));
        }}, "Mute …"));
        if (page.known(alert.opened))
            actions.append(page.make("button", {type: "button", onclick: () => {
                const end = page.alertEnd(alert), pad = Math.max(0.3 * (end - alert.opened), 60);
                page.time.show(alert.opened - pad, end + pad);
            }}, "Show in the charts"));
        const verdict = typeof alert.verdict === "boolean";
        if (verdict)
            actions.querySelectorAll(".right, .false").forEach((b) => (b.disabled = true));
        detail.append(actions, page.make("p", {class: "result", role: "status"}, verdict ? SAID[alert.verdict] : ""), form);
        detail.pictures = pictures;
        for (const p of pictures)
            p.draw();
    };

    const closeDetail = (item) => {
        const detail = item.querySelector(".detail");
        for (const p of detail.pictures || [])
            p.graph?.destroy();
        detail.pictures = [];
        detail.replaceChildren();
        detail.hidden = true;
        item.querySelector(".entry").setAttribute("aria-expanded", "false");
    };

    const toggle = (view, item) => {
        const alert = view.alerts.byName.get(item.dataset.item), detail = item.querySelector(".detail"), was = view.alerts.open;
        if (was && was !== item)
            closeDetail(was);
        if (!detail.hidden || !alert) {
            closeDetail(item);
            view.alerts.open = null;
            return;
        }
        view.alerts.open = item;
        detail.hidden = false;
        item.querySelector(".entry").setAttribute("aria-expanded", "true");
        openDetail(view, alert, detail);
    };

    page.recolourAlerts = (view) => view.alerts.open?.querySelectorAll(".drawn").forEach((f) => f.draw());

    /* ---- the list */

    const makeItem = (view, a) => {
        const id = "alert-" + view.number + "-" + view.alerts.made++;
        const item = page.make("li", {});
        item.append(page.make("button", {type: "button", class: "entry", "aria-expanded": "false", "aria-controls": id, onclick: () => toggle(view, item)},
            page.chip(severity(a)), page.make("span", {class: "when"}), page.make("bdi", {class: "text"}), page.make("span", {class: "verdict"})),
        page.make("div", {class: "detail", id, hidden: true}));
        item.closed = () => {
            closeDetail(item);
            if (view.alerts.open === item)
                view.alerts.open = null;
        };
        return item;
    };

    const updateItem = (item, a) => {
        page.level(item.querySelector(".level"), severity(a));
        item.classList.toggle("is-open", a.state === "open");
        page.set(item.querySelector(".when"), a.state === "open" ? "open since " + page.moment(a.opened)
            : page.moment(a.opened) + (page.known(a.closed) ? ", closed after " + lasted(a) : ", closed"));
        page.set(item.querySelector(".text"), a.text);
        page.set(item.querySelector(".verdict"), a.verdict === true ? "Verdict: right" : a.verdict === false ? "Verdict: false alarm" : "");
    };

    page.drawAlerts = (view) => {
        const panel = view.node.querySelector(".alerts"), list = sorted(view), open = list.filter((a) => a.state === "open").length;
        const shown = list.slice(0, Math.max(view.alerts.shown, Math.min(open, 20)));
        view.alerts.made = view.alerts.made || 0;
        page.reconcile(panel.querySelector(".alert-list"), shown, nameOf, (a) => makeItem(view, a), updateItem);
        page.show(panel.querySelector(".empty"), !list.length);
        page.set(panel.querySelector(".empty"), "No alerts so far. Each alert of this stream is listed here, with the values that caused it.");
        const old = list.filter(replayed), notes = [];
        if (old.length)
            notes.push((old.length === 1 ? "One alert has the time of its sample, " : old.length + " alerts have the times of their samples, ") +
                [...new Set([Math.min(...old.map((a) => a.opened)), Math.max(...old.map(page.alertEnd))].map((t) => page.moment(t)))].join(" to ") +
                ", before this stream began: the charts show " + (old.length === 1 ? "it" : "them") + " at that time (Show in the charts).");
        if (view.alerts.older)
            notes.push("Only " + list.length + " alerts are listed here; GET /alerts and GET /history/alerts have the older ones.");
        page.set(panel.querySelector(".note"), notes.join(" "));
        const more = panel.querySelector(".more button");
        page.show(more, list.length > shown.length);
        page.set(more, "Show " + (list.length - shown.length) + " more");
        page.set(panel.querySelector("h3"), "Alerts" + (open ? ": " + open + " open" : list.length ? ": none open" : ""));
        bands(view);
    };

    page.closeAlerts = (view) => {
        for (const item of view.node.querySelectorAll(".alert-list > li"))
            item.closed();
    };

    page.moreAlerts = (view) => {
        view.alerts.shown += 20;
        page.drawAlerts(view);
    };

    /* A click on a band opens its alert. */
    page.alertAt = (view, t, fits) => {
        const found = fits && sorted(view).find((a) => fits(a) && a.opened <= t && page.alertEnd(a) >= t);
        if (!found)
            return;
        view.alerts.shown = Math.max(view.alerts.shown, sorted(view).indexOf(found) + 1);
        page.drawAlerts(view);
        for (const item of view.node.querySelectorAll(".alert-list > li"))
            if (item.dataset.item === nameOf(found)) {
                if (item.querySelector(".detail").hidden)
                    toggle(view, item);
                item.scrollIntoView({block: "nearest"});
            }
    };

    /* ---- mutes that last */

    page.askMutes = (view) => page.paced(view, "mutesDue", 15000, async () => {
        const {mutes} = await page.get("/mutes", {stream: view.name}), place = view.node.querySelector(".mutes");
        const what = (m) => [m.sensor, m.key].filter(Boolean).join(" of ") || "the whole stream";
        page.reconcile(place, mutes, (m) => m.id, (m) => page.make("p", {class: "muted"}, page.make("span", {class: "words"}), " ",
            page.make("button", {type: "button", onclick: async () => {
                const result = view.node.querySelector(".alerts > .result");
                try {
                    await page.request("DELETE", "/mutes/" + encodeURIComponent(m.id) + "?" + new URLSearchParams({stream: view.name}));
                    page.set(result, "The mute of " + what(m) + " has ended.");
                } catch (error) {
                    page.set(result, "Not unmuted: " + error.message);
                }
                view.mutesDue = 0;
                page.askMutes(view);
            }}, "Unmute")),
        (node, m) => page.set(node.querySelector(".words"), "Muted: " + what(m) + " until " + page.moment(m.until) + (m.reason ? " (" + m.reason + ")" : "") +
            (m.held ? ", " + page.count(m.held) + " held back" : "")));
    });
})();
