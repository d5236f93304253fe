import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { generatedPages } from '../../docs/generated-pages.ts'

test.each(generatedPages().map((page) => [basename(page.path), page] as const))(
  'docs/%s says what the code says (npm run docs writes it again)',
  (_name, { path, text }) => {
    expect(readFileSync(path, 'utf8')).toBe(text)
  },
)
