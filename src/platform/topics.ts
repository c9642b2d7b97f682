/** Who gets what is published under a name, for a platform without topics of its own. */
export interface Topics<Member> {
  join(member: Member, topic: string): void
  leave(member: Member, topic: string): void
  membersOf(topic: string): Iterable<Member>
}

export function createTopics<Member>(): Topics<Member> {
  const topics = new Map<string, Set<Member>>()
  return {
    join(member, topic) {
      const members = topics.get(topic)
      if (members) members.add(member)
      else topics.set(topic, new Set([member]))
    },
    leave(member, topic) {
      const members = topics.get(topic)
      members?.delete(member)
      if (members?.size === 0) topics.delete(topic)
    },
    membersOf: topic => topics.get(topic) ?? [],
  }
}
