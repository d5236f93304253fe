import { expect, test } from 'vitest'
import { isServiceError } from '../../billing/error-body.ts'

test.each([
  [401, { detail: 'Invalid token.' }],
  [401, { detail: 'Given token not valid.', code: 'token_not_valid', messages: [{ message: 'expired' }] }],
  [404, { detail: 'Not found.' }],
  [429, { detail: 'Request was throttled. Expected available in 3 seconds.' }],
  [400, { detail: 'JSON parse error - Expecting value' }],
  [400, { number: ['A valid integer is required.'] }],
  [400, { non_field_errors: ['The fields supplier, number must make a unique set.'] }],
  [400, { lines: [{}, { amount: ['A valid number is required.'] }] }],
  [400, { fiscal: { tax_id: ['Not a valid RUT.'] }, tags: { 0: ['Bad.'] } }],
  [400, { lines: { 0: { amount: ['No.'] } } }],
  [409, ['It exists already.']],
  [422, { name: ['Too long.'], currency: ['Unknown.'] }],
])('a %i with %j is the service’s own word', (status, body) => {
  expect(isServiceError({ status, body })).toBe(true)
})

test.each([
  ['nothing', 400, undefined],
  ['an empty object', 409, {}],
  ['an empty list', 400, []],
  ['a text', 400, 'Bad Request'],
  ['Kong’s', 404, { message: 'no Route matched with those values' }],
  ['API Gateway’s', 403, { message: 'Forbidden' }],
  ['API Management’s', 401, { statusCode: 401, message: 'Access denied due to missing subscription key.' }],
  ['Apigee’s', 400, { fault: { faultstring: 'Bad', detail: { errorcode: 'policies.Failed' } } }],
  ['Spring’s', 404, { timestamp: '2026-03-01', status: 404, error: 'Not Found', path: '/addons/' }],
  ['a problem document', 422, { type: 'about:blank', title: 'Unprocessable', status: 422, detail: 'x' }],
  ['JSON:API’s', 400, { errors: [{ status: '400', title: 'Bad Request' }] }],
  ['another framework’s', 422, { detail: [{ loc: ['body'], msg: 'field required' }] }],
  ['a field with a bare sentence', 400, { error: 'invalid_request' }],
  ['fields with a 404', 404, { number: ['No.'] }],
  ['fields with a 403', 403, { number: ['No.'] }],
  ['a list in which nothing is wrong', 400, { lines: [{}, {}] }],
])('%s is not', (_whose, status, body) => {
  expect(isServiceError({ status, body })).toBe(false)
})
