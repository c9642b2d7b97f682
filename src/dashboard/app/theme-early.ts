// Runs before the first paint, so that no page flashes in the wrong theme.
try {
  const chosen = localStorage.getItem('tidings.theme')
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset['theme'] = chosen
} catch {
  // Without storage, the theme follows the system.
}
