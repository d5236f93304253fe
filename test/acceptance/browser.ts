import { chromium, type Browser } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { findProgram } from './find-program.ts'

const wanted = {
  names: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
  variable: 'CHROMIUM_PATH',
  install: 'apt-get install chromium',
}

/** A browser without a window. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: findProgram(wanted),
    // Chromium's own sandbox does not start for root, as which containers run.
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  })
}

/** One that is gone with the test. */
export async function openBrowser(): Promise<Browser> {
  const browser = await launchBrowser()
  onTestFinished(() => browser.close())
  return browser
}
