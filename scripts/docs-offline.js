// Search runs in a worker, which browsers refuse to a page that is opened as a file. There this runs the worker's
// script in a hidden frame in its place, with the same messages.
"use strict";
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const script = new URL(url, document.baseURI);
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inside = this.frame.contentWindow;
      const deliver = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      // Both sides have a copy of their own, as between a page and a worker.
      inside.postMessage = (data) => setTimeout(deliver, 0, structuredClone(data));
      inside.importScripts = (...urls) =>
        urls.reduce(
          (before, one) =>
            before.then(
              () =>
                new Promise((resolve, reject) => {
                  const element = inside.document.createElement("script");
                  element.src = new URL(one, script).href;
                  element.onload = resolve;
                  element.onerror = reject;
                  inside.document.head.append(element);
                }),
            ),
          Promise.resolve(),
        );
      inside.importScripts(script.href).then(() => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }
    postMessage(data) {
      if (!this.ready) {
        this.waiting.push(data);
        return;
      }
      const inside = this.frame.contentWindow;
      inside.dispatchEvent(new inside.MessageEvent("message", { data: structuredClone(data) }));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
