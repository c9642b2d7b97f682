import { describe, expect, test } from 'bun:test'
import { findPresetProblem, formatForPreset } from '../../src/webhooks/presets.ts'

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

  test('respects the limits of the service, and splits no character', () => {
    const long = { ...notice, title: '💰'.repeat(500), description: '€'.repeat(5_000) }
    const of = (preset: 'slack' | 'discord' | 'telegram' | 'ntfy') =>
      JSON.parse(formatForPreset(preset, 'https://a.test/b/topic?chat_id=1', long).body)
    expect(of('slack').blocks[0].text.text.length).toBeLessThanOrEqual(150)
    expect(of('slack').blocks[1].text.text.length).toBeLessThanOrEqual(3000)
    expect(of('discord').embeds[0].title.length).toBeLessThanOrEqual(256)
    expect(of('discord').embeds[0].description.length).toBeLessThanOrEqual(4096)
    expect(of('telegram').text.length).toBeLessThanOrEqual(4096)
    expect(Buffer.byteLength(of('ntfy').message)).toBeLessThanOrEqual(4096)
    for (const preset of ['slack', 'discord', 'telegram', 'ntfy'] as const) {
      expect(
        formatForPreset(preset, 'https://a.test/b/topic?chat_id=1', long).body.isWellFormed(),
      ).toBe(true)
      expect(formatForPreset(preset, 'https://a.test/b/topic?chat_id=1', long).body).not.toContain(
        '\\ud83',
      )
    }
  })

  test.each([
    ['https://ntfy.sh/topic', 'https://ntfy.sh/', 'topic'],
    ['https://a.test/base/topic?auth=x', 'https://a.test/base/?auth=x', 'topic'],
  ])('ntfy: %s is sent to %s', (url, goesTo, topic) => {
    const shaped = formatForPreset('ntfy', url, notice)
    expect(shaped.url).toBe(goesTo)
    expect(JSON.parse(shaped.body).topic).toBe(topic)
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
})
