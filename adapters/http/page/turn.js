/* The page as a whole: its first line, the list of streams, and the turn that brings everything up to date once a second.
 *
 * A turn asks for the streams, and then, for each stream that is open and on the screen, for what is due. Nothing is asked while
 * the tab is hidden. When the server does not answer, the turn asks for the streams alone, at intervals that grow to ten seconds,
 * and the line below the first says since when; the first answer brings everything else back. */
"use strict";

(() => {
    const LONGEST = 10000; // milliseconds between two attempts while the connection is lost
    const find = (id) => document.getElementById(id);

    page.views = new Map(); // by the name of the stream

    /* ---- one stream */

    const visible = new IntersectionObserver((entries) => {
        for (const e of entries) {
            const view = [...page.views.values()].find((v) => v.node === e.target);
            if (!view || view.seen === e.isIntersecting)
                continue;
            view.seen = e.isIntersecting;
            if (view.seen && view.open && view.info.state !== "waiting")
                update(view).catch(() => {});
        }
    }, {rootMargin: "300px"});

    const fold = (view, open) => {
        view.open = open;
        view.node.querySelector(".fold").setAttribute("aria-expanded", String(open));
        page.show(view.node.querySelector(".body"), open);
    };

    const unfold = (view, open) => {
        fold(view, open);
        if (open) {
            page.stale(view.series);
            update(view).catch(() => {});
        }
    };

    const makeView = (s, number) => {
        const node = find("t-stream").content.cloneNode(true).firstElementChild;
        const view = {name: s.stream, number, node, bands: [], pointer: null, alerts: page.newAlerts(), series: page.series(s.stream), seen: true, open: false, status: null};
        const title = node.querySelector(".fold");
        node.id = "stream-" + number;
        title.id = "stream-" + number + "-title";
        node.setAttribute("aria-labelledby", title.id);
        page.set(node.querySelector(".name"), s.stream);
        title.addEventListener("click", () => unfold(view, !view.open));
        node.querySelector(".alerts .more button").addEventListener("click", () => page.moreAlerts(view));
        page.makeCharts(view, node.querySelector(".charts"));
        page.makeKeys(view);
        return view;
    };

    const guarded = (promise) => promise.catch((error) => {
        if (error.lost)
            throw error;
    });

    const figures = async (view) => {
        view.status = await page.get("/status", {stream: view.name});
        view.regress = view.info.task === "regress" || page.known(view.status["rmse.w"]);
        page.drawTiles(view);
        page.drawStorage(view);
        if (view.info.keys || page.known(view.status.keys))
            await page.askKeys(view);
        else
            page.noKeys(view);
    };

    let drawnWidth = 0; // seconds: where it changes, the charts of all streams follow at once

    const curves = async (view) => {
        if (await page.refresh(view.series)) {
            const [from, to] = page.time.window(), other = Math.abs(to - from - drawnWidth) > 0.5;
            drawnWidth = to - from;
            for (const v of page.views.values())
                if (v === view || (other && v.open))
                    page.drawCharts(v);
            if (!page.firstPicture) {
                page.firstPicture = true;
                performance.mark("first-picture");
            }
        }
    };

    const QUIET = 2.5; // seconds without an answer after which a stream is asked nothing; the server asks it once a second

    const questions = async (view) => {
        if (view.info.state !== "live" || page.now() - view.info.answered > QUIET)
            return;
        await figures(view); // first: where this one gets no answer, the others would not either
        await Promise.all([page.askAlerts, page.askMutes, page.askPanels].map((f) => guarded(f(view))));
    };

    /* Of a stream that does not answer there is the history alone. */
    const update = (view) => (view.info.state === "waiting" ? Promise.resolve() : Promise.all([curves, questions].map((f) => guarded(f(view)))));

    const windowChanged = () => {
        drawTools();
        for (const view of page.views.values()) {
            page.stale(view.series);
            if (!view.open)
                continue;
            page.drawCharts(view); // at once with what is there, and again with the figures of the new window
            if (view.seen)
                guarded(page.askPastAlerts(view)).then(() => guarded(curves(view))).catch(() => {});
        }
    };

    /* ---- all streams */

    const listItem = (s) => page.make("li", {}, page.make("a", {href: "#stream-" + page.views.get(s.stream).number, onclick: () => {
        const view = page.views.get(s.stream);
        if (!view.open)
            unfold(view, true);
        view.node.querySelector(".fold").focus({preventScroll: true});
    }}, page.make("bdi", {class: "name"}, s.stream)), page.chip(s.level), page.make("span", {class: "sentence"}));

    /* The time in a sentence is the stream's own zone; here it is the viewer's. Next to its name a stream needs no name. */
    const inZone = (s) => (page.known(s.since) && s.since_text ? s.sentence.replace(s.since_text, () => page.moment(s.since)) : s.sentence);
    const ownSentence = (s) => {
        const text = inZone(s), name = s.stream + ": ";
        return text.startsWith(name) ? text.slice(name.length) : text;
    };

    const shownLevel = (s) => (s.state === "waiting" ? "wait" : s.level);
    const order = {bad: 0, notice: 1, ok: 3};

    const takeStreams = (answer) => {
        const streams = answer.streams, place = find("streams"), many = streams.length > 1;
        streams.sort((a, b) => (order[a.level] ?? 2) - (order[b.level] ?? 2));
        for (const s of streams) {
            let view = page.views.get(s.stream);
            if (!view) {
                page.made = (page.made || 0) + 1;
                view = makeView(s, page.made);
                view.info = s;
                page.views.set(s.stream, view);
                place.append(view.node);
                visible.observe(view.node);
                fold(view, page.views.size === 1);
            }
            view.info = s;
            page.level(view.node.querySelector(".head .level"), shownLevel(s));
            page.set(view.node.querySelector(".head .sentence"), ownSentence(s));
            view.node.classList.toggle("is-silent", s.state !== "live");
        }
        for (const [name, view] of page.views)
            if (!streams.some((s) => s.stream === name)) { // a stream that was renamed: its address stood for its name
                page.closeCharts(view);
                page.closeAlerts(view);
                visible.unobserve(view.node);
                view.node.remove();
                page.views.delete(name);
            }
        document.body.classList.toggle("is-single", !many);
        page.show(find("list"), many);
        if (many)
            page.reconcile(find("list").querySelector("ul"), streams, (s) => s.stream, listItem, (node, s) => {
                page.level(node.querySelector(".level"), shownLevel(s));
                page.set(node.querySelector(".sentence"), ownSentence(s));
            });
        const waiting = streams.every((s) => s.state === "waiting");
        page.show(find("nothing"), waiting);
        page.show(place, !waiting);
        page.set(find("waiting"), streams.length ? "Asked: " + streams.map((s) => s.address).join(", ") + "." : "");
        page.set(find("version"), "svmstream " + (answer.version || ""));
    };

    /* The first line. It changes with every figure; what is announced to screen readers is a change of its level, or of its words
     * without the numbers, and that at most every ten seconds. */
    const announced = {level: "", words: "", at: 0};

    const takeSentence = (level, sentence) => {
        const first = document.querySelector(".first"), words = sentence.replace(/[\d.,:]+/g, "");
        page.attribute(first, "data-level", level);
        page.level(first.querySelector(".level"), level);
        page.set(find("sentence"), sentence);
        page.set(document.querySelector("title"), (level === "ok" ? "" : page.word(level) + ": ") + "svmstream");
        if (level !== announced.level || (words !== announced.words && Date.now() - announced.at > 10000)) {
            Object.assign(announced, {level, words, at: Date.now()});
            page.set(find("announcement"), page.word(level) + ": " + sentence);
        }
    };

    const showLost = () => {
        const since = page.connection.lostSince, node = find("lost");
        page.show(node, since > 0);
        document.body.classList.toggle("is-lost", since > 0);
        if (since)
            page.set(node, "Connection lost " + page.seconds(Math.max(Math.round((Date.now() - since) / 1000), 0)) + " ago, trying again. The figures below are from before.");
    };

    /* ---- the turn */

    let pause = 1000, lost = false, turning = false, next = 0;

    const again = () => {
        for (const view of page.views.values()) {
            page.stale(view.series);
            page.panelsAgain(view);
            view.alerts.due = view.mutesDue = view.keys.due = 0;
        }
    };

    page.turn = async () => {
        if (turning || document.hidden || page.connection.refused)
            return;
        turning = true;
        try {
            const answer = await page.get("/streams");
            page.show(find("token"), false);
            if (lost)
                again();
            lost = false;
            pause = 1000;
            takeSentence(answer.all.level, inZone(answer.all));
            page.show(find("history"), answer.history?.ok === false);
            page.set(find("history"), "The history is not complete: " + (answer.history?.reason || "its file failed") + ".");
            takeStreams(answer);
            drawTools();
            await Promise.all([...page.views.values()].filter((v) => v.open && v.seen && v.info.state !== "waiting").map(update));
        } catch (error) {
            lost = lost || Boolean(error.lost);
            pause = Math.min(2 * pause, LONGEST);
            if (!error.lost && error.status !== 401)
                takeSentence("bad", error.message);
        } finally {
            turning = false;
            showLost();
            next = Date.now() + pause;
        }
    };

    const tick = () => {
        if (page.connection.lostSince)
            showLost();
        if (Date.now() >= next - 20)
            page.turn();
    };

    const takeEvent = (kind, data) => {
        if (kind === "lost")
            return again();
        const view = page.views.get(data.stream);
        if (view && kind === "alert")
            page.takeAlert(view, data);
    };

    /* ---- tools */

    const button = (text, name, action, more) => page.make("button", {type: "button", "aria-label": name, title: name, onclick: action, ...more}, text);

    const drawTools = () => {
        const {live, span} = page.time, [from, to] = page.time.window();
        for (const b of find("ranges").children)
            page.attribute(b, "aria-pressed", String(live && Number(b.dataset.span) === span));
        page.attribute(document.querySelector("#moves .live"), "aria-pressed", String(live));
        page.set(find("shown"), live ? "live" + (page.time.growing() ? ", figures begin at " + page.moment(page.time.first) : "") : page.moment(from, to - from < 3600) + " to " + page.moment(to, to - from < 3600));
        find("shown").classList.toggle("is-live", live);
    };

    const makeTools = () => {
        for (const [text, span] of page.time.ranges)
            find("ranges").append(page.make("button", {type: "button", "data-span": span, "aria-pressed": "false", onclick: () => page.time.follow(span)}, text));
        find("moves").append(button("◂", "earlier", () => page.time.move(-0.5)), button("▸", "later", () => page.time.move(0.5)),
            button("−", "show a longer time", () => page.time.zoom(2)), button("+", "show a shorter time", () => page.time.zoom(0.5)),
            page.make("button", {type: "button", class: "live", "aria-pressed": "true", onclick: () => page.time.follow()}, "Live"));
        page.time.changed.push(windowChanged);
        drawTools();
    };

    /* Colours: those of the system, or the ones that were chosen; always light on paper. */
    const stored = () => {
        try {
            return localStorage.getItem("theme") || "auto";
        } catch {
            return "auto";
        }
    };

    const dress = (theme) => {
        if (theme === "auto")
            document.documentElement.removeAttribute("data-theme");
        else
            document.documentElement.setAttribute("data-theme", theme);
        page.recolour();
    };

    const makeTheme = () => {
        const select = find("theme");
        select.value = stored();
        dress(select.value);
        select.addEventListener("change", () => {
            try {
                localStorage.setItem("theme", select.value);
            } catch { /* it lasts as long as the page then */
            }
            dress(select.value);
        });
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dress(select.value));
        addEventListener("beforeprint", () => dress("light"));
        addEventListener("afterprint", () => dress(select.value));
    };

    page.onToken = () => {
        page.show(find("token"), true);
        takeSentence("notice", "this page needs a token");
        if (page.connection.token)
            page.set(find("token").querySelector(".result"), "The server does not accept this token.");
    };

    find("token").addEventListener("submit", (event) => {
        event.preventDefault();
        page.useToken(find("token-value").value.trim());
        page.set(find("token").querySelector(".result"), "");
        find("token-value").value = "";
        page.turn();
    });

    page.set(find("zone"), page.zone());
    makeTools();
    makeTheme();
    document.addEventListener("visibilitychange", () => {
        if (!document.hidden) {
            again();
            page.turn();
        }
    });
    page.turn();
    setInterval(tick, 250);
    page.listen("/events?kind=alert", takeEvent, again);
})();
