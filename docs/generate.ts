// npm run docs: writes the pages that are generated from the code. A test fails when one is stale.
import { writeFileSync } from 'node:fs'
import { outdatedRecords } from './evidence.ts'
import { generatedPages } from './generated-pages.ts'

for (const { path, text } of generatedPages()) writeFileSync(path, text)
for (const line of outdatedRecords()) console.log(line)
