import { defaultPayloadConverter } from '@temporalio/common'
import proto from '@temporalio/proto'
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createPayloadCodec, keyIdOf, PayloadKeyError } from '../../worker/codec/payload-codec.ts'
import { payloadKeys } from '../../worker/settings/kinds.ts'

const newKey = () => randomBytes(32).toString('base64')
const context = { type: 'workflow', namespace: 'default', workflowId: 'run' } as const
const codecOf = (...keys: string[]) =>
  createPayloadCodec(keys.length === 0 ? [] : payloadKeys.parse(keys.join('\n')))
const value = { by: 'Ana', why: 'rut 11.111.111-1' }
const payload = defaultPayloadConverter.toPayload(value)
const read = async (
  codec: ReturnType<typeof codecOf>,
  encoded: (typeof payload)[],
  at: typeof context | undefined = context,
) => (await codec.decode(encoded, at)).map((one) => defaultPayloadConverter.fromPayload(one))

test('an encrypted payload shows nothing of its value, differs each time, and is read with the same key', async () => {
  const codec = codecOf(newKey())
  const encoded = await codec.encode([payload, payload], context)
  const bytes = encoded.map(({ data }) => Buffer.from(data ?? []).toString('latin1'))
  expect(bytes.join()).not.toMatch(/Ana|rut|json/)
  expect(bytes[0]).not.toBe(bytes[1])
  expect(await read(codec, encoded)).toEqual([value, value])
})

test('a codec server with the layout of Temporal’s samples reads it: 12 bytes of nonce, the payload, its tag of 16', async () => {
  const key = newKey()
  const [encoded] = await codecOf(key).encode([payload], context)
  const data = Uint8Array.from(encoded?.data ?? [])
  const { subtle } = globalThis.crypto
  const secret = await subtle.importKey('raw', Buffer.from(key, 'base64'), 'AES-GCM', false, ['decrypt'])
  const opened = await subtle.decrypt(
    { name: 'AES-GCM', iv: data.subarray(0, 12) },
    secret,
    data.subarray(12),
  )
  const read = proto.temporal.api.common.v1.Payload.decode(new Uint8Array(opened))
  expect(defaultPayloadConverter.fromPayload(read)).toEqual(value)
})

test('the first key encrypts and every key decrypts, so that keys can be rotated', async () => {
  const [old, fresh] = [newKey(), newKey()]
  const before = await codecOf(old, fresh).encode([payload], context)
  const after = await codecOf(fresh, old).encode([payload], context)
  expect(keyIdOf(before[0] ?? {})).not.toBe(keyIdOf(after[0] ?? {}))
  for (const codec of [codecOf(old, fresh), codecOf(fresh, old)])
    expect(await read(codec, [...before, ...after])).toEqual([value, value])
  expect(await read(codecOf(fresh), after)).toEqual([value])
  await expect(read(codecOf(fresh), before)).rejects.toThrow(PayloadKeyError)
})

test('without a key nothing is encrypted, and what is encrypted is refused with the id of its key', async () => {
  const encoded = await codecOf(newKey()).encode([payload], context)
  expect(await codecOf().encode([payload], context)).toEqual([payload])
  await expect(read(codecOf(), encoded)).rejects.toThrow(
    `is encrypted with the key ${keyIdOf(encoded[0] ?? {})}, and this process has no key.`,
  )
})

test('a payload that is not encrypted is read with a key too: the UI sends inputs so', async () => {
  expect(await read(codecOf(newKey()), [payload])).toEqual([value])
})

test('the memo of a schedule that another connector encrypted reads as nothing, and does not end the list', async () => {
  const encoded = await codecOf(newKey()).encode([payload])
  const decoded = await codecOf(newKey()).decode(encoded)
  expect(decoded.map((one) => defaultPayloadConverter.fromPayload(one))).toEqual([undefined])
})

test('a payload that was changed or cut short is not read', async () => {
  const codec = codecOf(newKey())
  const [encoded = {}] = await codec.encode([payload], context)
  const data = Buffer.from(encoded.data ?? [])
  for (const at of [0, 20, data.length - 1]) {
    const changed = Buffer.from(data)
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
    await expect(codec.decode([{ ...encoded, data: changed }], context)).rejects.toThrow(
      'was changed after it was encrypted',
    )
  }
  for (const length of [0, 12, 27, data.length - 1])
    await expect(codec.decode([{ ...encoded, data: data.subarray(0, length) }], context)).rejects.toThrow(
      'was changed after it was encrypted',
    )
})

test.each([
  'secret',
  Buffer.alloc(16).toString('base64'),
  `${Buffer.alloc(32).toString('base64')} x`,
  'a'.repeat(64),
])('a key of another form is refused: %s', (text) => {
  expect(payloadKeys.safeParse(text).error?.issues[0]?.message).toContain('openssl rand -base64 32')
})
