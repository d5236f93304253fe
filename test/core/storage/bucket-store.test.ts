import { describe, expect, test } from 'vitest'
import { toStoreError } from '../../../core/storage/bucket-store.ts'

const place = { bucket: 'exports', prefix: 'billing' }
const sdkError = (name: string, status = 0, message = 'hunter2') =>
  Object.assign(new Error(message), { name, $metadata: { httpStatusCode: status } })

describe('an error of the object store is one sentence that says what to do', () => {
  test.each<[string, unknown, string]>([
    ['NoSuchBucket', sdkError('NoSuchBucket', 404), 'There is no bucket exports. Create it,'],
    [
      'AccessDenied',
      sdkError('AccessDenied', 403),
      'do not permit this in s3://exports/billing (AccessDenied). Grant',
    ],
    [
      'a 403 without a name',
      sdkError('403', 403),
      'do not permit this in s3://exports/billing (unknown error)',
    ],
    [
      'InvalidAccessKeyId',
      sdkError('InvalidAccessKeyId', 403),
      'rejects the credentials (InvalidAccessKeyId)',
    ],
    ['ExpiredToken', sdkError('ExpiredToken', 400), 'rejects the credentials (ExpiredToken)'],
    [
      'no credentials',
      sdkError('CredentialsProviderError'),
      'There are no credentials for s3://exports/billing.',
    ],
    ['no region', sdkError('Error', 0, 'Region is missing'), 'Set AWS_REGION.'],
    ['an empty region', sdkError('Error', 0, 'Region not accepted: region="" is'), 'Set AWS_REGION.'],
    ['PermanentRedirect', sdkError('PermanentRedirect', 301), 'lies in another region (PermanentRedirect)'],
    ['NotImplemented', sdkError('NotImplemented', 501), 'does not implement a call (NotImplemented)'],
    [
      'another refusal',
      sdkError('InvalidBucketName', 400),
      'rejects a call for s3://exports/billing (InvalidBucketName)',
    ],
  ])('for good: %s', (_title, error, sentence) => {
    const translated = toStoreError(error, place)
    expect(translated).toMatchObject({ name: 'StoreRefusedError', retryable: false })
    expect(translated.message).toContain(sentence)
    expect(translated.message).not.toContain('hunter2')
  })

  test.each<[string, unknown, string]>([
    ['503', sdkError('SlowDown', 503), '(SlowDown)'],
    ['429', sdkError('TooManyRequests', 429), '(TooManyRequests)'],
    ['500 without a name', sdkError('UnknownError', 500), '(unknown error)'],
    ['refused', Object.assign(new Error('x'), { code: 'ECONNREFUSED' }), '(ECONNREFUSED)'],
    ['an unknown host', Object.assign(new Error('x'), { code: 'ENOTFOUND' }), '(ENOTFOUND)'],
    ['a timeout', sdkError('TimeoutError'), '(TimeoutError)'],
    ['anything else', 'thrown by someone', '(unknown error)'],
  ])('for now: %s', (_title, error, reason) => {
    const translated = toStoreError(error, { ...place, host: 'storage.example.com' })
    expect(translated).toMatchObject({ name: 'StoreAwayError', retryable: true })
    expect(translated.message).toContain(
      `s3://exports/billing cannot be reached at storage.example.com ${reason}.`,
    )
    expect(translated.message).not.toContain('hunter2')
  })
})
