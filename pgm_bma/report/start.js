// Last: wake what can be explored. Its picture stays for paper, and where no script runs.
for (const root of document.querySelectorAll(".live")) {
  const data = JSON.parse(root.querySelector("script").textContent);
  explorers[root.dataset.kind](root, data);
  root.classList.add("awake");
}
