import { inject, onTestFinished, test, expect } from 'vitest'
import { connectTemporal, NoRootCertificatesError } from '../../../worker/connect-temporal.ts'

test('a system without root certificates is told what to install, in words of its own', async () => {
  const { SSL_CERT_FILE, SSL_CERT_DIR } = process.env
  onTestFinished(() => {
    for (const [name, value] of Object.entries({ SSL_CERT_FILE, SSL_CERT_DIR })) {
      delete process.env[name]
      if (value !== undefined) process.env[name] = value
    }
  })
  // As in an image without them.
  Object.assign(process.env, { SSL_CERT_FILE: '/nowhere', SSL_CERT_DIR: '/nowhere' })
  const connecting = connectTemporal({ address: inject('temporalAddress'), tls: {} })
  const error: unknown = await connecting.catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(NoRootCertificatesError)
  expect(error).toMatchObject({ hint: expect.stringContaining('ca-certificates') })
})
