/* Which column is the label, on the columns of tables that many know, written down from memory: the right
 * one, or none and the line asks. A wrong one, taken in silence, is the failure. */
#include "support/feed.h"

#define ROWS 300

/* Columns as name:kind. r = real, i = integers of a wide range, iN = integers below N, wN = words, N of them,
 * u = words that all differ, n = row numbers, t = times, 1 = one value. */
static const struct table {
    const char *columns, *label;
    bool asked; /* none may be taken: the values of this table tell too little */
} tables[] = {
    /* the four of the trials */
    {"id:u,followers:i,status:w3,verified:i2,is_bot:i2", "is_bot", false},
    {"id:u,category:w5,price:r,clicked:i2", "clicked", false},
    {"id:n,gender:w2,age:i,hypertension:i2,ever_married:w2,work_type:w5,avg_glucose_level:r,bmi:r,"
     "smoking_status:w4,stroke:i2",
     "stroke", false},
    {"hotel:w2,is_canceled:i2,lead_time:i,meal:w5,country:w30,is_repeated_guest:i2,adr:r,"
     "reservation_status:w3,reservation_status_date:t",
     "is_canceled", false},
    /* and others */
    {"age:i,workclass:w8,fnlwgt:i,education:w16,education-num:i16,marital-status:w7,occupation:w14,"
     "relationship:w6,race:w5,sex:w2,capital-gain:i,hours-per-week:i,native-country:w40,income:w2",
     "income", false},
    {"PassengerId:n,Survived:i2,Pclass:i3,Name:u,Sex:w2,Age:r,SibSp:i6,Parch:i6,Ticket:u,Fare:r,Embarked:w3",
     "Survived", false},
    {"survived:i2,pclass:i3,sex:w2,age:r,sibsp:i6,parch:i6,fare:r,embarked:w3,class:w3,who:w3,adult_male:w2,"
     "deck:w7,embark_town:w3,alive:w2,alone:w2",
     "survived", false},
    {"age:i,job:w12,marital:w3,education:w4,default:w2,balance:i,housing:w2,loan:w2,contact:w3,day:i28,"
     "month:w12,duration:i,campaign:i9,pdays:i,previous:i9,poutcome:w4,y:w2",
     "y", false},
    {"age:i,job:w12,marital:w3,education:w4,default:w2,balance:i,housing:w2,loan:w2,contact:w3,day:i28,"
     "month:w12,duration:i,campaign:i9,poutcome:w4,deposit:w2",
     "deposit", false},
    {"customerID:u,gender:w2,SeniorCitizen:i2,Partner:w2,tenure:i,Contract:w3,PaperlessBilling:w2,"
     "MonthlyCharges:r,Churn:w2",
     "Churn", false},
    {"RowNumber:n,CustomerId:i,Surname:u,CreditScore:i,Geography:w3,Gender:w2,Age:i,Balance:r,HasCrCard:i2,"
     "IsActiveMember:i2,EstimatedSalary:r,Exited:i2",
     "Exited", false},
    {"Time:i,V1:r,V2:r,V3:r,Amount:r,Class:i2", "Class", false},
    {"Pregnancies:i15,Glucose:i,BloodPressure:i,BMI:r,Age:i,Outcome:i2", "Outcome", false},
    {"id:i,diagnosis:w2,radius_mean:r,texture_mean:r,area_worst:r", "diagnosis", false},
    {"age:i,sex:i2,cp:i4,trestbps:i,chol:i,fbs:i2,restecg:i3,thalach:i,exang:i2,oldpeak:r,slope:i3,ca:i4,"
     "thal:i4,target:i2",
     "target", false},
    {"Age:i,Sex:w2,ChestPainType:w4,RestingBP:i,Cholesterol:i,FastingBS:i2,ExerciseAngina:w2,Oldpeak:r,"
     "ST_Slope:w3,HeartDisease:i2",
     "HeartDisease", false},
    {"Age:i,Attrition:w2,BusinessTravel:w3,Department:w3,Gender:w2,MaritalStatus:w3,MonthlyIncome:i,"
     "Over18:1,OverTime:w2,YearsAtCompany:i30",
     "Attrition", false},
    {"satisfaction_level:r,number_project:i6,average_montly_hours:i,Work_accident:i2,left:i2,"
     "promotion_last_5years:i2,sales:w10,salary:w3",
     "left", true},
    {"Loan_ID:u,Gender:w2,Married:w2,Dependents:w4,Education:w2,Self_Employed:w2,ApplicantIncome:i,"
     "LoanAmount:i,Credit_History:i2,Property_Area:w3,Loan_Status:w2",
     "Loan_Status", false},
    {"class:w2,cap-shape:w6,cap-surface:w4,bruises:w2,odor:w9,gill-size:w2,habitat:w7", "class", false},
    {"sepal_length:r,sepal_width:r,petal_length:r,petal_width:r,species:w3", "species", false},
    {"species:w3,island:w3,bill_length_mm:r,flipper_length_mm:i,body_mass_g:i,sex:w2", "species", false},
    {"fixed acidity:r,volatile acidity:r,pH:r,alcohol:r,quality:i6", "quality", true},
    {"v1:w2,v2:u", "v1", false},
    {"UDI:n,Product ID:u,Type:w3,Air temperature [K]:r,Torque [Nm]:r,Tool wear [min]:i,Machine failure:i2,"
     "TWF:i2,HDF:i2,RNF:i2",
     "Machine failure", false},
    {"id:n,dur:r,proto:w30,service:w12,state:w7,spkts:i,attack_cat:w10,label:i2", "label", false},
    {"Age:i,Sex:w2,Job:i4,Housing:w3,Saving accounts:w4,Credit amount:i,Duration:i,Purpose:w8,Risk:w2",
     "Risk", false},
    {"encounter_id:i,race:w5,gender:w2,age:w10,time_in_hospital:i14,insulin:w4,change:w2,diabetesMed:w2,"
     "readmitted:w3",
     "readmitted", false},
    {"Daily Time Spent on Site:r,Age:i,Area Income:r,City:u,Male:i2,Country:w40,Timestamp:t,Clicked on Ad:i2",
     "Clicked on Ad", false},
    {"id:u,click:i2,hour:i,C1:i7,banner_pos:i5,site_category:w12,device_type:i4,C20:i,C21:i", "click", false},
    {"ip:i,app:i90,device:i9,os:i50,channel:i80,click_time:t,is_attributed:i2", "is_attributed", false},
    {"id:n,target:i2,ps_ind_01:i8,ps_ind_06_bin:i2,ps_reg_01:r,ps_calc_20_bin:i2", "target", false},
    {"Time:t,s0:r,s1:r,s2:r,Pass/Fail:i2", "Pass/Fail", false},
    {"ID:n,LIMIT_BAL:i,SEX:i2,EDUCATION:i4,MARRIAGE:i3,AGE:i,PAY_0:i9,BILL_AMT1:i,"
     "default.payment.next.month:i2",
     "default.payment.next.month", false},
    {"employee_id:i,department:w9,region:w30,gender:w2,no_of_trainings:i8,KPIs_met >80%:i2,awards_won?:i2,"
     "avg_training_score:i,is_promoted:i2",
     "is_promoted", false},
    {"ph:r,Hardness:r,Solids:r,Turbidity:r,Potability:i2", "Potability", false},
    {"id:i,Gender:w2,Customer Type:w2,Age:i,Type of Travel:w2,Class:w3,Flight Distance:i,Seat comfort:i6,"
     "Arrival Delay in Minutes:i,satisfaction:w2",
     "satisfaction", false},
    {"Date:t,Location:w30,MinTemp:r,MaxTemp:r,WindGustDir:w16,RainToday:w2,RainTomorrow:w2", "RainTomorrow",
     false},
    {"Administrative:i20,ProductRelated:i,BounceRates:r,Month:w10,VisitorType:w3,Weekend:w2,Revenue:w2",
     "Revenue", false},
    {"step:i,type:w5,amount:r,nameOrig:u,oldbalanceOrg:r,nameDest:u,isFraud:i2,isFlaggedFraud:1", "isFraud",
     false},
    {"Elevation:i,Aspect:i,Slope:i50,Wilderness_Area1:i2,Soil_Type1:i2,Soil_Type2:i2,Cover_Type:i7",
     "Cover_Type", true},
    {"buying:w4,maint:w4,doors:w4,persons:w3,lug_boot:w3,safety:w3,class:w4", "class", false},
    {"school:w2,sex:w2,age:i8,address:w2,famsize:w2,Medu:i5,internet:w2,absences:i,G1:i19,G2:i19,G3:i19",
     "G3", true},
    {"age:i,sex:w2,bmi:r,children:i6,smoker:w2,region:w4,charges:r", "charges", true},
    {"loan_amnt:i,term:w2,int_rate:r,grade:w7,home_ownership:w4,verification_status:w3,loan_status:w2,"
     "purpose:w14,addr_state:w40,dti:r",
     "loan_status", false},
    {"instant:n,dteday:t,season:i4,yr:i2,holiday:i2,workingday:i2,temp:r,casual:i,registered:i,cnt:i", "cnt",
     true},
    {"having_IP_Address:i2,URL_Length:i3,Shortining_Service:i2,SSLfinal_State:i3,web_traffic:i3,Result:i2",
     "Result", false},
    {"ID:n,Warehouse_block:w5,Mode_of_Shipment:w3,Customer_rating:i5,Gender:w2,Weight_in_gms:i,"
     "Reached.on.Time_Y.N:i2",
     "Reached.on.Time_Y.N", false},
    {"job_id:n,title:u,telecommuting:i2,has_company_logo:i2,has_questions:i2,employment_type:w5,"
     "required_education:w12,fraudulent:i2",
     "fraudulent", false},
    {"ID:i,Year_Birth:i60,Education:w5,Marital_Status:w7,Income:i,Dt_Customer:t,MntWines:i,Complain:i2,"
     "Response:i2",
     "Response", false},
    {"id:n,age:i,gender:i2,height:i,weight:r,smoke:i2,alco:i2,active:i2,cardio:i2", "cardio", false},
    {"ID:i,name:u,category:w40,main_category:w15,currency:w9,goal:r,pledged:r,state:w5,backers:i,country:w20",
     "state", true},
    {"X:i9,Y:i8,month:w12,day:w7,FFMC:r,DMC:r,temp:r,RH:i,wind:r,area:r", "area", true},
    {"carat:r,cut:w5,color:w7,clarity:w8,depth:r,table:r,price:i,x:r,y:r,z:r", "price", true},
    {"longitude:r,latitude:r,housing_median_age:i50,total_rooms:i,median_income:r,median_house_value:i,"
     "ocean_proximity:w5",
     "median_house_value", true},
    {"datetime:t,machineID:w30,volt:r,rotate:r,pressure:r,vibration:r,failure:w4", "failure", false},
};

static void write_cell(FILE *to, const char *kind, unsigned *chance, int row) {
    *chance = *chance * 1103515245u + 12345u;
    const unsigned v = *chance >> 16 & 0x7fff;
    const unsigned n = kind[1] ? (unsigned)atoi(kind + 1) : 9000;
    switch (*kind) {
    case 'r':
        fprintf(to, "%.3f", v / 100.0);
        break;
    case 'i':
        fprintf(to, "%u", v % n);
        break;
    case 'w':
        fprintf(to, "word%c%c", 'a' + (int)(v % n) / 26, 'a' + (int)(v % n) % 26);
        break;
    case 'u':
        fprintf(to, "name-%d-%u", row, v);
        break;
    case 'n':
        fprintf(to, "%d", row + 1);
        break;
    case 't':
        fprintf(to, "2026-%02d-%02d", 1 + row / 28 % 12, 1 + row % 28);
        break;
    default:
        fputs("0", to);
    }
}

/* The file of a table: its header, and rows of chance. */
static char *write_table(const struct table *t) {
    char *text = NULL, columns[1000];
    size_t size = 0;
    unsigned chance = 7;
    FILE *to = open_memstream(&text, &size);
    for (int row = -1; row < ROWS; row++) {
        strcpy(columns, t->columns);
        for (char *rest = columns, *name; (name = strsep(&rest, ","));) {
            char *kind = strrchr(name, ':');
            *kind++ = 0;
            if (name != columns)
                fputc(',', to);
            if (row < 0)
                fputs(name, to);
            else
                write_cell(to, kind, &chance, row);
        }
        fputc('\n', to);
    }
    fclose(to);
    return text;
}

/* Is it among the names after "--label may be"? */
static bool is_named(const char *note, const char *name) {
    const char *list = strstr(note, "--label may be "), *end = list ? strstr(list, " · ") : NULL;
    const char *found = list ? strstr(list, name) : NULL;
    return found && (!end || found < end);
}

static void the_label_is_right_or_asked_for(void **state) {
    (void)state;
    int right = 0, wrong = 0;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const struct table *t = &tables[i];
        struct svi_reader_options o = {.format = "csv", .placed = true};
        struct feed f;
        svs_error err = {0};
        char *text = write_table(t), label[100];
        feed_open(&f, text, strlen(text), &o, NULL);
        assert_int_equal(svi_reader_settle(f.reader, &err), SVS_OK);
        const char *note = svi_reader_note(f.reader);
        snprintf(label, sizeof label, "label %s (", t->label);
        const bool is_right = strncmp(note, label, strlen(label)) == 0;
        const bool asks = strncmp(note, "no label", 8) == 0 && (t->asked || is_named(note, t->label));
        right += is_right;
        if (!is_right && !asks) {
            print_message("%s: %s\n", t->columns, note);
            wrong++;
        }
        feed_close(&f);
        free(text);
    }
    print_message("%d of %zu right, the others asked\n", right, sizeof tables / sizeof *tables);
    assert_int_equal(wrong, 0);
    assert_true(right * 3 > 2 * (int)(sizeof tables / sizeof *tables)); /* asking each time is no answer */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_label_is_right_or_asked_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
