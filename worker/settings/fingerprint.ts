import { createHmac, randomBytes } from 'node:crypto'

/**
 * Hashes of settings by name, to compare them later without keeping them. Each has the salt before it, so that equal
 * settings of two starts do not look alike.
 */
export function toFingerprint(settings: Readonly<Record<string, string>>): Record<string, string> {
  const salt = randomBytes(16).toString('hex')
  return Object.fromEntries(Object.entries(settings).map(([name, text]) => [name, hash(salt, text)]))
}

/** The settings that have another value now, or have one only now. */
export function findChanged(
  fingerprint: Readonly<Record<string, string>>,
  settings: Readonly<Record<string, string>>,
): string[] {
  return Object.entries(settings).flatMap(([name, text]) => {
    const then = fingerprint[name]
    return then === hash(then?.split(' ')[0] ?? '', text) ? [] : [name]
  })
}

const hash = (salt: string, text: string) =>
  `${salt} ${createHmac('sha256', salt).update(text).digest('hex')}`
