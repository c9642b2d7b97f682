// Runs before anything is painted, so that no page flashes in the colours that its reader has not chosen.
try {
  const chosen = localStorage.getItem('tidings.theme')
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset['theme'] = chosen
} catch {
  // A browser that keeps nothing follows the system.
}
