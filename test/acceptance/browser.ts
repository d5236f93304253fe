import { chromium, type Browser } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { findProgram } from './programs.ts'

/** A browser without a window. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: findProgram('chromium'),
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
