import { expect } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import type { World } from '../export/world.ts'

interface Finding {
  check: string
  status: string
  message: string
}

/** What `check` finds, each in a sentence and without the token, and its exit code. */
export async function checkAll(of: World, env: Record<string, string> = {}, ...words: string[]) {
  const { code, stdout, stderr, ms } = await callCommand(of, ['check', ...words, '--json'], { env })
  for (const text of [stdout, stderr]) expect(text).not.toContain(of.sandbox.token)
  const { findings } = JSON.parse(stdout) as { findings: Finding[] }
  for (const { message } of findings) expect(message).toMatch(/^([A-Z/]|s3:).*\S\.$/)
  return { code, ms, findings, wrong: findings.filter(({ status }) => status !== 'ok') }
}
