// Pictures of every page, to look at: npm run pictures [folder]
import { mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'
import { toReportPage } from '../../core/runs/view/html.ts'
import { examplePages } from './example-pages.ts'
import { findProgram } from './programs.ts'

const folder = resolve(process.argv[2] ?? 'data/pictures')
await mkdir(folder, { recursive: true })
const isRoot = process.getuid?.() === 0
const browser = await chromium.launch({
  executablePath: findProgram('chromium'),
  args: isRoot ? ['--no-sandbox'] : [],
})
for (const [name, view] of Object.entries(examplePages)) {
  const path = join(folder, `${name}.html`)
  await writeFile(path, toReportPage(view))
  const page = await browser.newPage({
    viewport: { width: 1000, height: 400 },
    timezoneId: 'America/Santiago',
  })
  await page.goto(pathToFileURL(path).href)
  const picture = (kind: string) =>
    page.screenshot({ path: join(folder, `${name}-${kind}.png`), fullPage: true })
  await picture('desktop')
  await page.emulateMedia({ colorScheme: 'dark' })
  await picture('dark')
  await page.setViewportSize({ width: 360, height: 400 })
  await picture('phone')
  // A4 less its margins.
  await page.setViewportSize({ width: 688, height: 400 })
  await page.emulateMedia({ colorScheme: 'light', media: 'print' })
  await picture('print')
  await page.close()
}
await browser.close()
process.stdout.write(`${folder}\n`)
