// A worker for the page's first second. The first use of Intl takes long, and the process keeps
// what it loads. So the page does not wait for it.
Intl.DateTimeFormat()
close()
