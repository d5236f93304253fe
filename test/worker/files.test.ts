import { describe, expect, test } from 'vitest'
import { parseBucketAddress } from '../../core/storage/bucket-store.ts'
import { openFiles } from '../../worker/files.ts'
import { readPlaces } from '../../worker/settings/settings.ts'

const open = (env: Record<string, string>) =>
  openFiles(readPlaces({ env: { CONNECTOR_FILES_URL: 's3://exports/billing', ...env }, cwd: '/nowhere' }))

describe('the address of a bucket', () => {
  test.each([
    ['s3://exports', { bucket: 'exports', prefix: '' }],
    ['s3://exports/', { bucket: 'exports', prefix: '' }],
    ['s3://my.exports-1/billing/acc_1/', { bucket: 'my.exports-1', prefix: 'billing/acc_1' }],
    ["s3://exports/a=1/b+c@d!('e')*", { bucket: 'exports', prefix: "a=1/b+c@d!('e')*" }],
  ])('%s', (text, expected) => {
    expect(parseBucketAddress(text)).toEqual(expected)
  })

  test.each([
    's3:/exports/billing',
    's3//exports',
    's3://',
    's3://Exports',
    's3://ex',
    's3://exports//billing',
    's3://exports/../billing',
    's3://exports/a b',
    's3://exports/ñ',
    's3://exports?region=x',
    's3://key:secret@exports/billing',
    'https://exports.s3.amazonaws.com/billing',
    'gs://exports/billing',
    './exports',
  ])('is none: %s', (text) => {
    expect(parseBucketAddress(text)).toBeUndefined()
  })
})

describe('the store of published files', () => {
  test('is none without the setting', () => {
    expect(open({ CONNECTOR_FILES_URL: '' })).toBeUndefined()
    expect(open({})?.locate('a')).toBe('s3://exports/billing/a')
  })

  test.each([
    ['storage.example.com', 'is not an http or https address'],
    ['ftp://storage.example.com', 'is not an http or https address'],
    ['http://storage.example.com', 'would send exports over unencrypted http'],
  ])('is refused at the endpoint %s', (AWS_ENDPOINT_URL_S3, problem) => {
    expect(() => open({ AWS_ENDPOINT_URL_S3 })).toThrow(problem)
  })

  test.each([
    { AWS_ENDPOINT_URL: 'https://storage.example.com' },
    { AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:7070' },
    { AWS_ENDPOINT_URL_S3: 'http://storage.example.com', BILLING_ALLOW_HTTP: 'true' },
  ])('is accepted with %o', (environment: Record<string, string>) => {
    expect(open(environment)?.locate('')).toBe('s3://exports/billing')
  })
})
