import { PROJECT } from '../support/fakes/api.ts'
import { fillBoard, fillOverview, noCards } from '../support/fakes/insights.ts'
import { fillShop } from '../support/fakes/shop.ts'
import type { Screen } from './screens.ts'

const path = `/p/${PROJECT}/insights`

export const INSIGHT_SCREENS: Screen[] = [
  {
    name: 'insights',
    path,
    prepare: api => {
      fillShop(api)
      fillBoard(api)
    },
    until: '.bars-tall',
    act: page => page.getByText('Show as table').click(),
  },
  {
    name: 'insights-edit',
    path,
    prepare: fillBoard,
    until: 'text=grace@example.com',
    act: page => page.getByRole('button', { name: 'Settings of Top users' }).click(),
  },
  { name: 'insights-none', path, prepare: noCards, until: 'text=No cards yet' },
  {
    name: 'insights-add',
    path: `${path}?add=tag%3Avip&hours=24`,
    prepare: noCards,
    until: 'text=Leave it empty to count all events.',
    async act(page) {
      await page.getByLabel('Show as').selectOption('top')
      await page.getByLabel('Count by').selectOption('metadata')
    },
  },
  {
    name: 'insights-broken',
    path,
    prepare: api => {
      fillBoard(api)
      api.on('GET /api/projects/:id/insights/:card/result', () => ({
        status: 503,
        code: 'unavailable',
        error: 'The database cannot be reached. Try again shortly.',
      }))
    },
    until: 'text=Try again',
  },
  {
    name: 'overview',
    path: '/',
    prepare: fillOverview,
    until: 'text=37 new',
    act: page => page.getByText('Live', { exact: true }).waitFor(),
  },
  {
    name: 'overview-none',
    path: '/overview',
    prepare: api => api.on('GET /api/overview', () => ({ data: { projects: [], more: 0 } })),
    until: 'text=No projects yet',
  },
]
