// Runs before Ray's own script. The bar's "Job" leads to the job that is looked at, and Ray's page says what it asks for:
// its Logs tab leaves out nodes that are dead, and its Cluster tab calls every worker alive, which is wrong in the past.
(() => {
  // Ray's page counts durations until `new Date()`: of a session that is over that is its end. `Date.now()` goes on, because timers
  // and delays rest on it.
  const ended = Number(document.currentScript?.dataset.endedMs);
  if (ended) {
    window.Date = new Proxy(Date, {
      construct: (target, values, made) => Reflect.construct(target, values.length ? values : [ended], made),
    });
  }
  const route = () => location.hash.replace(/^#/, "");
  const purpose = () => (/^\/logs/.test(route()) ? "logs" : /^\/cluster\/?$/.test(route()) ? "cluster" : "");
  const isAboutNodes = (url) => /(^|\/)nodes(\?view=summary$|\/[0-9a-f]+$)/.test(url);
  const told = (url) => {
    const why = typeof url === "string" && isAboutNodes(url) && purpose();
    return why ? `${url}${url.includes("?") ? "&" : "?"}keeper=${why}` : url;
  };
  const { open } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    return open.call(this, method, told(url), ...rest);
  };
  const follow = () => {
    const link = document.getElementById("rk-job");
    const job = /^\/jobs\/([^/?]+)/.exec(route());
    if (!link) return;
    link.hidden = !job;
    if (job) link.href = `${link.dataset.session}job/${job[1]}`;
  };
  addEventListener("hashchange", follow);
  addEventListener("DOMContentLoaded", follow);
  // Ray's router changes the address without a word.
  for (const name of ["pushState", "replaceState"]) {
    const original = history[name];
    history[name] = function (...values) { original.apply(this, values); follow(); };
  }
})();
