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

  const LINK = 'https://shop.example.com/orders/42?a=1&b=2'
  test.each([
    ['low', undefined, undefined, 2],
    ['normal', undefined, undefined, undefined],
    ['high', '#e8912d', 0xe8912d, 4],
    ['critical', '#d93025', 0xd93025, 5],
  ] as const)(
    'attention §1 shows that an event is %s',
    (level, slackColor, discordColor, priority) => {
      const slack = of('slack', { level })
      const { text, blocks } = of('slack', {})
      const attachments = [{ color: slackColor, blocks: blocks.slice(1) }]
      // Receivers without blocks show the text as the message.
      expect(slack).toEqual(
        slackColor === undefined
          ? { text, blocks }
          : { text, blocks: blocks.slice(0, 1), attachments },
      )
      expect(of('discord', { level }).embeds[0].color).toBe(discordColor)
      expect(of('ntfy', { level }).priority).toBe(priority)
      for (const [preset] of PRESETS) {
        if (level === 'normal') expect(of(preset, { level })).toEqual(of(preset, {}))
      }
    },
  )

  test('attention §2 leads to the url of an event', () => {
    const { blocks } = of('slack', { url: LINK })
    expect(blocks.at(-2).text).toEqual({
      type: 'mrkdwn',
      text: '<https://shop.example.com/orders/42?a=1&amp;b=2|Open shop.example.com>',
    })
    expect(of('discord', { url: LINK }).embeds[0].url).toBe(LINK)
    expect(of('ntfy', { url: LINK }).click).toBe(LINK)
    expect(of('telegram', { url: LINK }).text).toEndWith(`…\n\n${LINK}\n\npayments · Shop`)
  })

  test.each([
    ['markup', 'https://a.test/|x>*_~`<!channel>', 'https://a.test/%7Cx%3E*_~%60%3C!channel%3E'],
    ['other letters', 'https://grüße.test/ü', 'https://xn--gre-6ka8l.test/%C3%BC'],
  ])(
    'writes the url with %s in ASCII, without what a service reads as its own',
    (_, url, ascii) => {
      expect(of('discord', { url }).embeds[0].url).toBe(ascii)
      expect(of('slack', { url }).blocks.at(-2).text.text).toStartWith(`<${ascii}|`)
    },
  )

  test.each([
    ['a host without a dot, which Discord refuses', 'http://nas:3000/x', ['discord']],
    ['an address in brackets, which Discord refuses', 'http://[::1]/x', ['discord']],
    ['a long one', `https://a.test/${'ü'.repeat(2_000)}`, ['slack', 'discord', 'telegram', 'ntfy']],
  ])('leaves out the url if a service does not take it: %s', (_, url, lacking) => {
    for (const preset of lacking as (keyof typeof URLS)[]) {
      expect([preset, of(preset, { url })]).toEqual([preset, of(preset, {})])
    }
  })

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
    const link = { ...long, url: `https://a.test/${'x'.repeat(2_033)}`, level: 'critical' }
    expect(of('slack', link).attachments[0].blocks.at(-2).text.text.length).toBeWithin(1, 3_001)
    expect(of('discord', link).embeds[0].url.length).toBeWithin(1, 2_049)
    expect(of('telegram', link).text.length).toBeWithin(1, 4_097)
    expect(of('telegram', link).text).toContain(link.url)
    const alert = formatForPreset('ntfy', URLS.ntfy, { ...notice, ...link } as never).body
    expect(Buffer.byteLength(alert)).toBeWithin(1, 8_193)
    expect(Buffer.byteLength(JSON.parse(alert).message)).toBeWithin(400, 4_097)
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
