// The search reads a leading "-" as "without": a pasted option is searched by its name.
document.addEventListener("input", ({ target }) => {
  if (target.matches(".md-search__input")) target.value = target.value.replace(/(^|\s)-+(?=\w)/g, "$1");
}, true);
