import type { ComponentChildren } from 'preact'

interface SectionOptions {
  id: string
  title: string
  children: ComponentChildren
}

/** A part of a page with its heading. */
export function Section({ id, title, children }: SectionOptions) {
  return (
    <section class="section" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  )
}
