import {
  ApplicationFailure,
  type WorkflowInboundCallsInterceptor,
  type WorkflowInterceptorsFactory,
} from '@temporalio/workflow'
import { isUnreadable } from './unreadable.ts'

const refuse = (what: string, args: readonly unknown[]): void => {
  if (!args.some(isUnreadable)) return
  const how = 'give one JSON object, with the encoding json/plain.'
  throw ApplicationFailure.nonRetryable(`The ${what} can't be read as JSON: ${how}`, 'InvalidInput')
}

class RefusingInterceptor implements WorkflowInboundCallsInterceptor {
  execute: NonNullable<WorkflowInboundCallsInterceptor['execute']> = async (input, next) => {
    refuse('input', input.args)
    return next(input)
  }
  validateUpdate: NonNullable<WorkflowInboundCallsInterceptor['validateUpdate']> = (input, next) => {
    refuse(`input of ${input.name}`, input.args)
    next(input)
  }
  handleQuery: NonNullable<WorkflowInboundCallsInterceptor['handleQuery']> = async (input, next) => {
    refuse(`input of ${input.queryName}`, input.args)
    return next(input)
  }
}

export const interceptors: WorkflowInterceptorsFactory = () => ({ inbound: [new RefusingInterceptor()] })
