import { attentionReasons } from '../billing/resources/subscriptions.ts'

export type Reason = (typeof attentionReasons)[number]
export const reasonNames = attentionReasons

/** What a recovery does about each reason that a subscription needs attention for, where it is not told otherwise. */
export const reasons: Readonly<Record<Reason, { does: 'try' | 'report'; because: string }>> = {
  gateway_issue: {
    does: 'try',
    because: 'the payment gateway failed; when it works again, a resume brings the subscription back',
  },
  processing_issue: {
    does: 'try',
    because: 'the service failed while it billed; when it is well again, a resume bills anew',
  },
  biller_issue: {
    does: 'try',
    because: 'the biller did not issue the document; when it works again, a resume issues it',
  },
  reference_expired: {
    does: 'report',
    because:
      'its reference (a purchase order, say) has run out; somebody has to ask the customer for a new one',
  },
  without_reference: {
    does: 'report',
    because: 'it must carry a reference and has none; somebody has to enter it first',
  },
  without_usage_records: {
    does: 'report',
    because:
      'no usage was reported for the period; somebody has to report it, or it would be billed as nothing',
  },
}

/** The reasons that are tried where none is named. */
export const triedReasons: readonly Reason[] = reasonNames.filter((name) => reasons[name].does === 'try')

export const isReason = (name: string): name is Reason => (reasonNames as readonly string[]).includes(name)

/** Why a person is needed, in words. */
export const becauseOf = (reason: string): string =>
  isReason(reason) ? reasons[reason].because : 'it is a reason that this connector does not know'
