import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chromium, type Browser } from 'playwright-core'
import { onTestFinished } from 'vitest'

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

/** `CHROMIUM_PATH`, else what PATH has. */
function findBrowser(): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const said = process.env['CHROMIUM_PATH']
  const places = said ? [said] : folders.flatMap((folder) => names.map((name) => join(folder, name)))
  const found = places.find(isExecutable)
  if (found !== undefined) return found
  throw new Error(
    said
      ? `CHROMIUM_PATH names ${said}, and there is no program.`
      : 'There is no Chromium for the tests in a browser: install it (apt-get install chromium), or name one in CHROMIUM_PATH.',
  )
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** A browser without a window, gone with the test. */
export async function openBrowser(): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: findBrowser(),
    // Chromium's own sandbox does not start for root, as which containers run.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  })
  onTestFinished(() => browser.close())
  return browser
}
