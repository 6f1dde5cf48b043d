// Light or dark: the system's setting until the reader chooses.

import { at } from './dom.js';

const system = matchMedia('(prefers-color-scheme: dark)');

/** Keeps the choice; `changed` is called after each change of colours. */
export function keepTheme(changed) {
  const button = at('theme');
  const apply = () => {
    const chosen = localStorage.getItem('sluice-theme');
    const dark = (chosen ?? (system.matches ? 'dark' : 'light')) === 'dark';
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    button.setAttribute('aria-pressed', String(dark));
    changed();
  };
  button.addEventListener('click', () => {
    const dark = document.documentElement.dataset.theme === 'dark';
    localStorage.setItem('sluice-theme', dark ? 'light' : 'dark');
    apply();
  });
  system.addEventListener('change', apply);
  apply();
}
