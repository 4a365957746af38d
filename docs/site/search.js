// The search reads a leading "-" as "without", and words as alternatives: of an option all words are wanted.
document.addEventListener("input", ({ target }) => {
  if (target.matches(".md-search__input"))
    target.value = target.value.replace(/(^|\s)--(\w+(?:-\w+)*)/g, (_, space, name) => `${space}+${name.replaceAll("-", " +")}`);
}, true);
