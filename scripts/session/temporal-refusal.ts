import { isGrpcServiceError } from '@temporalio/client'
import { RefusedError } from '../terminal/failures.ts'

// gRPC status codes (https://grpc.io/docs/guides/status-codes).
const notFound = 5
const permissionDenied = 7
const unauthenticated = 16

/** Converts a refusal by Temporal to a sentence; undefined for any other error. */
export function toTemporalRefusal(
  cause: unknown,
  { address, namespace }: { address: string; namespace: string },
): RefusedError | undefined {
  if (!isGrpcServiceError(cause)) return undefined
  const code: number = cause.code
  if (code === notFound)
    return new RefusedError(`Temporal at ${address} has no namespace ${namespace}.`, {
      cause,
      hint: `Set TEMPORAL_NAMESPACE to an existing one, or create it: \`temporal operator namespace create --namespace ${namespace}\`.`,
    })
  if (code === permissionDenied || code === unauthenticated)
    return new RefusedError(`Temporal at ${address} refuses access to the namespace ${namespace}.`, {
      cause,
      hint: 'Set a valid key or certificate: TEMPORAL_API_KEY, or TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH.',
    })
  return undefined
}
