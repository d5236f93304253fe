import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { generatedPages } from '../../docs/generated-pages.ts'

test.each(generatedPages().map((page) => [basename(page.path), page] as const))(
  'docs/%s says what the code says (npm run docs writes it again)',
  (_name, { path, text }) => {
    expect(readFileSync(path, 'utf8')).toBe(text)
  },
)

const docs = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8')

interface Schema {
  properties: Record<string, Schema>
  additionalProperties: Schema
  allOf: { if: Schema; then: Schema }[]
  const?: string
}

test('by its schema, an editor completes each field of the example of schedules.yaml', () => {
  const example = docs('schedules.example.yaml')
  const [, named = ''] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(example) ?? []
  const { properties } = JSON.parse(docs(named)) as Schema
  const { schedules } = parse(example) as { schedules: Record<string, { workflow: string; input?: object }> }
  const entry = properties['schedules']!.additionalProperties
  for (const { workflow, ...fields } of Object.values(schedules)) {
    expect(Object.keys(entry.properties)).toEqual(expect.arrayContaining(Object.keys(fields)))
    const its = entry.allOf.find((one) => one.if.properties['workflow']!.const === workflow)
    const inputs = Object.keys(its!.then.properties['input']!.properties)
    expect(inputs).toEqual(expect.arrayContaining(Object.keys(fields.input ?? {})))
    expect(inputs).not.toContain('identity')
  }
})
