import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { NotFound, Unauthorized } from '../../core/billing/errors.ts'
import { fixedToken, tokenFromFile } from '../../worker/settings/rotating.ts'
import { createLogger } from '../../worker/telemetry/log.ts'
import { createTokenWait } from '../../worker/service.ts'

const logger = createLogger({ level: 'error', format: 'text' })
const failure = { method: 'GET', path: '/plans/', byService: true }
const refused = new Unauthorized({ ...failure, status: 401 })
const { signal } = new AbortController()
const onWait = () => undefined

function openFile() {
  const folder = mkdtempSync(join(tmpdir(), 'token-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'token')
  writeFileSync(file, 'first')
  return { file, token: tokenFromFile({ file }) }
}

test('a token that is not replaced in time is given up', async () => {
  const { token } = openFile()
  await token({ rejected: 'first' })
  expect(await createTokenWait({ token, logger })?.(refused, { signal, withinMs: 50, onWait })).toBe(false)
})

test('a replaced token is noticed, and is the next one given', async () => {
  const { file, token } = openFile()
  await token({ rejected: 'first' })
  const waiting = createTokenWait({ token, logger })?.(refused, { signal, withinMs: 60_000, onWait })
  writeFileSync(file, 'second\n')
  expect(await waiting).toBe(true)
  expect(await token({ rejected: 'first' })).toBe('second')
})

test('a new token that another request already has ends the wait for it', async () => {
  const { file, token } = openFile()
  expect(await token({ rejected: 'first' })).toBe('first')
  writeFileSync(file, 'second')
  expect(await token({ rejected: 'first' })).toBe('second')
  expect(await createTokenWait({ token, logger })?.(refused, { signal, withinMs: 5_000, onWait })).toBe(true)
})

test('a file that was found empty counts as replaced by any token', async () => {
  const { file, token } = openFile()
  writeFileSync(file, '')
  const error: unknown = await token({ rejected: 'first' }).catch((thrown: unknown) => thrown)
  writeFileSync(file, 'first')
  expect(await createTokenWait({ token, logger })?.(error, { signal, withinMs: 60_000, onWait })).toBe(true)
  expect(await token()).toBe('first')
})

test('a stop ends the wait with its own reason', async () => {
  const stopped = AbortSignal.abort(new Error('stopped'))
  const waiting = createTokenWait({ token: openFile().token, logger })
  await expect(waiting?.(refused, { signal: stopped, withinMs: 60_000, onWait })).rejects.toThrow('stopped')
})

test('neither another error nor a token of the environment is waited for', async () => {
  const notFound = new NotFound({ ...failure, status: 404 })
  const wait = createTokenWait({ token: openFile().token, logger })
  expect(await wait?.(notFound, { signal, withinMs: 60_000, onWait })).toBe(false)
  expect(createTokenWait({ token: fixedToken('first'), logger })).toBeUndefined()
})
