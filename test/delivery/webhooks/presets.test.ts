import { describe, expect, test } from 'bun:test'
import { findPresetProblem, formatForPreset } from '../../../src/delivery/webhooks/presets.ts'

describe('delivery: a preset', () => {
  const notice = {
    title: 'Hi <!everyone> @everyone [a](https://evil.test) & *bold*',
    description: 'd'.repeat(10_000),
    icon: '💰',
    channelName: 'payments',
    projectName: 'Shop',
    timestamp: '2026-01-01T00:00:00.000Z',
    tags: ['a', 'b'],
  }
  const bodyOf = (preset: 'slack' | 'discord' | 'telegram' | 'ntfy', url: string) =>
    JSON.parse(formatForPreset(preset, url, notice).body)

  test('lets nobody mention or link', () => {
    const slack = bodyOf('slack', 'https://hooks.slack.com/x')
    expect(slack.text).toContain('&lt;!everyone&gt;')
    for (const block of slack.blocks.slice(0, 2)) expect(block.text.type).toBe('plain_text')
    const discord = bodyOf('discord', 'https://discord.com/x')
    expect(discord.allowed_mentions).toEqual({ parse: [] })
    expect(discord.embeds[0].title).toContain('\\[a\\]\\(https\\:')
    expect(bodyOf('telegram', 'https://t.test/x?chat_id=1')).not.toHaveProperty('parse_mode')
  })

  test.each([
    ['telegram', 'https://api.telegram.org/bot1/sendMessage', true],
    ['telegram', 'https://api.telegram.org/bot1/sendMessage?chat_id=1', false],
    ['ntfy', 'https://ntfy.sh/', true],
    ['ntfy', 'https://ntfy.sh/a%2Fb', true],
    ['ntfy', 'https://ntfy.sh/topic', false],
    ['slack', 'https://hooks.slack.com/', false],
  ] as const)('%s: %s has the problem %p', (preset, url, lacks) => {
    expect(findPresetProblem(preset, new URL(url)) !== undefined).toBe(lacks)
  })

  const URLS = {
    slack: 'https://hooks.slack.com/x',
    discord: 'https://discord.com/x',
    telegram: 'https://t.test/x?chat_id=1',
    ntfy: 'https://ntfy.sh/topic',
  } as const
  const PRESETS = Object.entries(URLS) as [keyof typeof URLS, string][]
  const of = (preset: keyof typeof URLS, changes: object) =>
    JSON.parse(formatForPreset(preset, URLS[preset], { ...notice, ...changes }).body)

  /** Returns every text of a body. */
  function listTexts(value: unknown): string[] {
    if (typeof value === 'string') return [value]
    return typeof value === 'object' && value !== null
      ? Object.values(value).flatMap(listTexts)
      : []
  }

  const BLANKS = ['', ' ', '\n\t ', '\u00a0\u2003', '\u200b\u200d\ufe0f', '\u2800', '\u3164\u00ad']

  test.each(BLANKS)('sends no blank text for a part that is %j', blank => {
    for (const [preset] of PRESETS) {
      for (const changes of [
        { description: blank },
        { title: blank, description: null },
        { icon: blank, title: blank, description: blank, tags: [blank] },
      ]) {
        for (const text of listTexts(of(preset, changes))) {
          expect([preset, changes, text.replaceAll(/[\s\p{C}\u2800\u3164]/gu, '')]).not.toEqual([
            preset,
            changes,
            '',
          ])
        }
      }
    }
    expect(of('ntfy', { description: blank }).message).toBe('payments · Shop')
    expect(of('slack', { title: blank, icon: null }).blocks[0].text.text).toBe('payments')
    expect(of('discord', { title: blank }).embeds[0]).toMatchObject({ title: '💰 payments' })
    expect(of('discord', { description: blank }).embeds[0]).not.toHaveProperty('description')
    expect(of('telegram', { title: 'Hi', description: blank }).text).toBe(
      '💰 Hi\n\npayments · Shop',
    )
  })

  const FAMILY = '👨‍👩‍👧‍👦'
  test.each([
    ['plain', 'a'],
    ['quotes', '"'],
    ['backslashes', '\\'],
    ['markdown', '*_'],
    ['control characters', '\u0001'],
    ['line breaks', '\n'],
    ['families', FAMILY],
    ['emoji', '💰'],
    ['marks', 'e\u0301\u0302\u0303'],
    ['endless marks', '\u0301'],
    ['three bytes', '€'],
    ['markup of Slack', '<!channel>&'],
  ])('keeps within the limits of each service: %s', (_, piece) => {
    const long = {
      title: `x${piece.repeat(500)}`.slice(0, 500).toWellFormed(),
      description: `x${piece.repeat(5_000)}`.slice(0, 5_000).toWellFormed(),
      channelName: `c${piece.repeat(255)}`.slice(0, 255).toWellFormed(),
      projectName: `p${piece.repeat(100)}`.slice(0, 100).toWellFormed(),
      tags: Array.from({ length: 20 }, () => `t${piece.repeat(50)}`.slice(0, 50).toWellFormed()),
    }
    const [slack, discord] = [of('slack', long), of('discord', long).embeds[0]]
    expect(slack.text.length).toBeWithin(1, 40_000)
    expect(slack.blocks[0].text.text.length).toBeWithin(1, 151)
    expect(slack.blocks[1].text.text.length).toBeWithin(1, 3_001)
    expect(discord.title.length).toBeWithin(1, 257)
    expect(discord.description.length).toBeWithin(1, 4_097)
    expect(
      discord.title.length + discord.description.length + discord.footer.text.length,
    ).toBeWithin(1, 6_001)
    for (const text of [discord.title, discord.description]) {
      // Escapes come in pairs: the last backslash escapes something.
      expect(/(?<!\\)(\\\\)*\\…?$/.test(text)).toBe(false)
    }
    const telegram = of('telegram', long).text
    expect(telegram.length).toBeWithin(1, 4_097)
    expect(telegram.endsWith(`${long.channelName} · ${long.projectName}`)).toBe(true)
    const ntfy = formatForPreset('ntfy', URLS.ntfy, { ...notice, ...long }).body
    expect(Buffer.byteLength(ntfy)).toBeWithin(1, 8_193)
    expect(Buffer.byteLength(JSON.parse(ntfy).message)).toBeWithin(500, 4_097)
    for (const [preset] of PRESETS) expect(JSON.stringify(of(preset, long))).not.toContain('\\ud83')
    if (piece === FAMILY) {
      for (const text of [slack.blocks[1].text.text, telegram.split('\n\n')[1]]) {
        const parts = [...new Intl.Segmenter().segment(text)].map(({ segment }) => segment)
        expect(new Set(parts)).toEqual(new Set(['x', FAMILY, '…']))
      }
    }
  })
})
