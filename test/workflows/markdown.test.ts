import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { describeExport, describeResource } from '../../workflows/export-details.ts'
import { describeImport } from '../../workflows/import-details.ts'
import { describeRecovery } from '../../workflows/recovery-details.ts'
import { escapeMarkdown } from '../../workflows/run/markdown.ts'

/** Everything that text of others must not become; what stands behind a backslash is shown. */
const active = (markdown: string) =>
  markdown
    .replaceAll(/\\[!-/:-@[-`{-~]/g, 'x')
    .match(/[`*[\]<>|~#&!]|:\/\/|\bwww\.|\p{Cc}|(?<![\p{L}\p{N}])_|^\s*([-+=]|\d+[.)])/giu)

test('text of others is shown and means nothing, and plain text stays as it is', () => {
  const part = fc.constantFrom(
    '[x](http://evil)',
    '![](http://evil/p.png)',
    '<img src=x>',
    '|',
    '\n',
    '# ',
    '- ',
    '1. ',
    '`',
    '**',
    '__',
    '_',
    '\\',
    '&amp;',
    'www.evil.cl',
    'https://evil',
    '\u001b[2J',
    'a',
    ' ',
    '~~',
    '> ',
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
      const text = parts.join('')
      expect(active(escapeMarkdown(text))).toBeNull()
      const back = escapeMarkdown(text).replaceAll(/\\([!-/:-@[-`{-~])/g, '$1')
      expect(back).toBe(
        text
          .trim()
          .replaceAll(/\s+/g, ' ')
          .replaceAll('\u001b', String.raw`\u001b`),
      )
    }),
    { seed: 20261122, numRuns: 500 },
  )
  const plain = 'Read acc_12: 2 of 3 lists (customers.csv), 10.5 s; a@b.cl said "no"'
  expect(escapeMarkdown(plain)).toBe(plain)
})

const evil = '[pay](http://evil.cl) ![](http://evil.cl/p.png) | <b>\n# x'
const linked = /(?<!\\)\]\(|(?<!\\)!\[|(?<!\\)<b>|\n# x|(?<!\\):\/\/evil/

test('no page of Current Details makes a link, an image or a line of what a service, a file or a person said', () => {
  const identity = { mode: 'live', workspace: evil, baseUrl: 'https://api.example.com' } as never
  const pages = [
    describeExport({ what: 'export', phase: 'ended', identity, summary: evil, resources: [] }),
    describeExport({
      what: 'export',
      phase: 'running',
      resources: [{ resource: 'plans', state: 'failed', says: evil }],
    }),
    describeResource({
      phase: 'ended',
      resource: 'plans',
      records: 1,
      requests: 1,
      verdict: 'unproven',
      reasons: [evil],
    }),
    describeImport({
      phase: 'sending',
      kind: 'addons',
      file: evil,
      identity,
      limits: {},
      staged: {
        totals: {
          rows: 1,
          changes: 1,
          sums: {},
          by: { field: 'currency', values: { [evil]: { changes: 1, sums: {} } } },
        },
      },
    } as never),
    describeImport({ phase: 'ended', summary: evil, limits: {} } as never),
    describeRecovery({ phase: 'ended', summary: evil, limits: {}, failedCanaries: [] } as never),
    describeRecovery({
      phase: 'sending',
      limits: {},
      failedCanaries: [evil],
      snapshot: {
        candidates: 1,
        proven: false,
        reasons: [evil],
        preview: {
          toResume: 1,
          byReason: { [evil]: 1 },
          byScheme: { [evil]: 1 },
          byNextBilling: {},
          notResumed: {},
          needsPerson: { [evil]: 1 },
        },
      },
    } as never),
  ]
  for (const page of pages) {
    expect(page).toContain('evil')
    expect(page).not.toMatch(linked)
  }
})
