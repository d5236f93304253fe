// Writes the pages that are made from the code: npm run docs. A test says when one is stale.
import { writeFileSync } from 'node:fs'
import { generatedPages } from './generated-pages.ts'

for (const { path, text } of generatedPages()) writeFileSync(path, text)
