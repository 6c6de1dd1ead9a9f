const elapsed = document.getElementById("elapsed");
const before = Number(elapsed.dataset.seconds);
setInterval(() => {
  elapsed.textContent = `${Math.round(before + performance.now() / 1000)} s`;
  fetch("/v1/live").then((answer) => answer.ok && location.reload(), () => undefined);
}, 1000);
