import { describeScreens } from './screen-checks.ts'

describeScreens('phone', 'first')
