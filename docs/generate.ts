// npm run docs: writes the pages that are generated from the code. A test fails when one is stale.
import { writeFileSync } from 'node:fs'
import { generatedPages } from './generated-pages.ts'

for (const { path, text } of generatedPages()) writeFileSync(path, text)
