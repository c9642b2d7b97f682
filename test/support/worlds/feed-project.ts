import { toId } from '../../../src/base/ids.ts'
import { newMember, type SignedInAccount } from './signed-in-account.ts'
import { newProject, type TestProject } from './project.ts'
import type { Booted } from '../servers/server.ts'

/** A project with a member, and functions that send events. */
export interface FeedProject extends TestProject {
  /** The public id. */
  project: string
  organizationId: string
  member: SignedInAccount
  /** Posts an event with this title; returns its JSON. */
  postEvent(title: string, more?: object): Promise<any>
  /** Posts `count` events, one after the other. */
  postEvents(count: number): Promise<void>
}

export async function newFeedProject(server: Pick<Booted, 'sql' | 'url'>): Promise<FeedProject> {
  const project = await newProject(server)
  const [row] = await server.sql<[{ organization_id: string }]>`
    select organization_id from projects where id = ${project.id}
  `
  const member = await newMember(server, { uuid: row.organization_id }, 'viewer')
  const postEvent = async (title: string, more: object = {}) => {
    const answer = await project.post('/v1/events', { channelName: 'payments', title, ...more })
    if (answer.status !== 201) throw new Error(answer.text)
    return answer.body.data
  }
  return {
    ...project,
    project: toId('prj', project.id),
    organizationId: row.organization_id,
    member,
    postEvent,
    async postEvents(count) {
      for (let nth = 1; nth <= count; nth++) await postEvent(`event ${nth}`)
    },
  }
}
